#include "compute/link/linked_turn.h"

#include "common/arbitration.h"
#include "container/container.h"
#include "region/account.h"
#include "region/activity.h"
#include "region/token_bucket.h"

/* A card to which nothing was launched for this long is not waited for. */
#define ACTIVE_FOR (1000 * NS_PER_MS)

unsigned linked_turn_number(const struct region_card *card) { return (unsigned)(card - container_region()->cards); }

static uint32_t load(const uint32_t *field) { return __atomic_load_n(field, __ATOMIC_RELAXED); }

static void store(uint32_t *field, uint32_t value) { /* NOLINT(readability-non-const-parameter) */
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static struct region_activity *row_of(const struct region_card *card) { return activity_of(container_region(), card); }

/* The number of a window's batches, beside the flags of its state. */
static uint32_t number(uint32_t state) { return state & ~(REGION_WINDOW_SERVED | REGION_WINDOW_AWAITED); }

static struct linked_card read_window(unsigned card, uint64_t now) {
    const struct region_activity *row = &container_region()->activity[card];
    uint64_t launched = __atomic_load_n(&row->last_launch_at, __ATOMIC_RELAXED);
    uint32_t state = load(&row->window_state);
    return (struct linked_card){.window = load(&row->window),
                                .used = load(&row->window_used_us) * NS_PER_US,
                                .batches = number(state),
                                .is_served = (state & REGION_WINDOW_SERVED) != 0,
                                .is_active = launched + ACTIVE_FOR > now};
}

static bool is_linked(uint32_t cards, unsigned own, unsigned other) {
    uint32_t back = load(&container_region()->activity[other].linked);
    return other != own && (cards >> other & 1) != 0 && (back >> own & 1) != 0;
}

/* The first card from number `from` on that is linked with `own`, one of `cards`; REGION_CARDS = none is. */
static unsigned next_linked(uint32_t cards, unsigned own, unsigned from) {
    if (!cards) return REGION_CARDS;
    while (from < REGION_CARDS && !is_linked(cards, own, from)) from++;
    return from;
}

struct linked_view linked_turn_look(const struct region_card *card) {
    struct linked_view view = {.cards = load(&row_of(card)->linked)};
    unsigned own = linked_turn_number(card), other = 0;
    for (; (other = next_linked(view.cards, own, other)) < REGION_CARDS; other++)
        view.others[view.count++].share = container_share(container_region()->cards[other].uuid);
    return view;
}

/* `share`: of the card. Tokens are only moved by charges of that share. */
static struct linked_card read_card(unsigned card, unsigned share, uint64_t now) {
    const struct region_card *row = &container_region()->cards[card];
    struct linked_card read = read_window(card, now);
    read.share = share;
    read.tokens = share ? token_bucket_tokens(row, share, now) : 0;
    read.is_open = row->holder != 0;
    return read;
}

void linked_turn_read(struct linked_view *view, const struct region_card *card, uint64_t now) {
    unsigned own = linked_turn_number(card), other = 0, count = 0;
    for (; count < view->count && (other = next_linked(view->cards, own, other)) < REGION_CARDS; other++, count++)
        view->others[count] = read_card(other, view->others[count].share, now);
    view->count = count;
}

void linked_turn_refresh(const struct region_card *card) {
    store(&row_of(card)->linked, linked_cards_of(container_region(), linked_turn_number(card)));
}

struct linked_card linked_turn_own(const struct region_card *card, unsigned share, uint64_t now) {
    struct linked_card own = read_card(linked_turn_number(card), share, now);
    own.is_open = false;
    return own;
}

void linked_turn_open(const struct region_card *card, uint32_t window) {
    struct region_activity *row = row_of(card);
    store(&row->window_used_us, 0);
    __atomic_fetch_and(&row->window_state, REGION_WINDOW_AWAITED, __ATOMIC_RELAXED);
    store(&row->window, window);
}

bool linked_turn_open_for_job(const struct region_card *card, uint32_t job) {
    if (load(&row_of(card)->window) == job) return false;
    linked_turn_open(card, job);
    return true;
}

void linked_turn_stay_apart(const struct region_card *card) { store(&row_of(card)->linked, 0); }

/* The other cards' windows, and the card's own. */
static struct linked_card read_windows(struct linked_view *view, const struct region_card *card, struct linked_use use,
                                       bool is_in_batch, uint64_t now) {
    struct linked_card self = {
        .window = load(&row_of(card)->window), .used = use.ns, .batches = use.batches, .is_in_batch = is_in_batch};
    unsigned own = linked_turn_number(card), other = 0;
    view->cards = load(&row_of(card)->linked);
    for (; (other = next_linked(view->cards, own, other)) < REGION_CARDS; other++)
        view->others[view->count++] = read_window(other, now);
    if (use.job) linked_cards_show_job(&self, view->others, view->count, use.job);
    return self;
}

enum linked_verdict linked_turn_judge_last(const struct region_card *card, struct linked_use use, bool is_in_batch,
                                           uint64_t now) {
    struct linked_view view = {0};
    struct linked_card self = read_windows(&view, card, use, is_in_batch, now);
    if (use.batches_elsewhere && view.count < REGION_CARDS)
        view.others[view.count++] = (struct linked_card){.window = self.window, .batches = use.batches_elsewhere};
    return linked_cards_judge_last(&self, view.others, view.count);
}

enum linked_verdict linked_turn_judge(const struct region_card *card, struct linked_use use, bool fits,
                                      bool is_in_batch, uint64_t now) {
    struct region_activity *row = row_of(card);
    struct linked_view view = {0};
    struct linked_card self = read_windows(&view, card, use, is_in_batch, now);
    if (!fits) __atomic_fetch_or(&row->window_state, REGION_WINDOW_SERVED, __ATOMIC_RELAXED);
    return linked_cards_judge(&self, view.others, view.count, fits);
}

static uint32_t in_us(uint64_t ns) { return (uint32_t)min_u64(ns / NS_PER_US, UINT32_MAX); }

void linked_turn_note_launch(const struct region_card *card, struct linked_use use, enum linked_verdict verdict) {
    struct region_activity *row = row_of(card);
    store(&row->window_used_us, in_us(use.ns));
    uint32_t more = number(use.batches) - number(load(&row->window_state));
    if (verdict == LINKED_FITS) __atomic_fetch_add(&row->window_state, more, __ATOMIC_RELAXED);
}

void linked_turn_note_awaited(const struct region_card *card, bool is_awaited) {
    uint32_t *state = &row_of(card)->window_state;
    if (is_awaited)
        __atomic_fetch_or(state, REGION_WINDOW_AWAITED, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(state, ~REGION_WINDOW_AWAITED, __ATOMIC_RELAXED);
}

static bool is_awaited(unsigned card, bool is_late, uint64_t now) {
    const struct region_card *row = &container_region()->cards[card];
    uint64_t until = __atomic_load_n(&row->busy_until, __ATOMIC_RELAXED);
    bool is_any =
        row->holder != 0 && (load(&container_region()->activity[card].window_state) & REGION_WINDOW_AWAITED) != 0;
    return is_any && (!is_late || now + ARBITRATION_BUSY_GRACE_NS > until + REGION_LINKED_LATE_AFTER_NS);
}

bool linked_turn_is_other_awaited(const struct region_card *card, bool is_late, uint64_t now) {
    uint32_t cards = load(&row_of(card)->linked);
    unsigned own = linked_turn_number(card), other = 0;
    for (; (other = next_linked(cards, own, other)) < REGION_CARDS; other++)
        if (is_awaited(other, is_late, now)) return true;
    return false;
}

/* What the window has used was charged when the card closed. */
bool linked_turn_seize(struct region_card *card, uint32_t process, unsigned share, uint64_t for_others, uint64_t now) {
    bool is_held = card->holder != 0 && card->holder != process;
    if (is_held || !linked_cards_may_owe(token_bucket_tokens(card, share, now), for_others)) return false;
    store(&row_of(card)->window_used_us, 0);
    token_bucket_seize(card, process, now);
    return true;
}

void linked_turn_join(const uint8_t first[UUID_SIZE], const uint8_t second[UUID_SIZE]) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region) return;
    int cards[] = {account_find_or_add_card(region, first), account_find_or_add_card(region, second)};
    if (cards[0] < 0 || cards[1] < 0) return;
    linked_cards_join(region, container_claim_slot(region), UINT32_C(1) << cards[0] | UINT32_C(1) << cards[1]);
    for (int i = 0; i < 2; i++) store(&region->activity[cards[i]].linked, linked_cards_of(region, (unsigned)cards[i]));
}

void linked_turn_part(void) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (region) linked_cards_part(region, container_claim_slot(region));
}
