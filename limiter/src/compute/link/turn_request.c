#include "compute/link/turn_request.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "compute/link/arbiter_link.h"
#include "compute/link/launch_batch.h"
#include "compute/link/linked_turn.h"
#include "container/container.h"
#include "region/account.h"
#include "region/activity.h"
#include "region/overdraft.h"
#include "region/token_bucket.h"

/* Longest wait for a turn of the container before the limits are read again. */
#define SLEEP_MAX (100 * NS_PER_MS)

/* While it waits for the arbiter, a process extends its turn of the container by this much each time;
 * arbiter_turn_await returns after 20 ms. */
#define WAITING_EXTENSION (50 * NS_PER_MS)

/* An arbiter that has a heartbeat but gives no turn for this long is ignored, and the process launches without one. The
 * longest kernels of four other containers may lie between two turns. */
#define ARBITER_TIMEOUT (5 * ARBITRATION_LONG_KERNEL_NS)

/* How long a launch waits for tokens before it goes early, if there is work elsewhere, and how often it asks for that
 * again. */
#define EARLY_AFTER (2 * NS_PER_MS)
#define EARLY_RETRY (1 * NS_PER_MS)

/* Likewise on a linked card, while another one has work, and while it has work that should have ended; how soon it is
 * seen then that there is such work, and that another card has opened. */
#define LINKED_AFTER (1000 * NS_PER_US)
#define LATE_AFTER   (100 * NS_PER_US)
#define LATE_RETRY   (100 * NS_PER_US)
#define LINKED_RETRY (500 * NS_PER_US)

/* Id of this process as holder of the container's turn. 0 = no holder. */
enum { HOLDER_WITHOUT_SLOT = 1, HOLDER_OF_FIRST_SLOT = 2 };

static uint32_t holder_id_of(int slot) {
    return slot < 0 ? HOLDER_WITHOUT_SLOT : HOLDER_OF_FIRST_SLOT + (uint32_t)slot;
}

/* The caller holds LOCK_REGION. */
static void resolve_row(struct turn_request *request) {
    struct region *region = container_region();
    int card = account_find_or_add_card(region, request->uuid);
    request->holder_id = holder_id_of(container_claim_slot(region));
    __atomic_store_n(&request->card, card < 0 ? NULL : &region->cards[card], __ATOMIC_RELAXED);
    __atomic_store_n(&request->activity, activity_of(region, request->card), __ATOMIC_RELAXED);
}

bool turn_request_is_needed(const struct turn_request *request, bool has_share) {
    return has_share || arbiter_link_is_contended(&request->link);
}

/* Tells the arbiter, by `busy_until` in the region, that this process uses the card. Turns write it otherwise, but this
 * process may need none. */
static void show_use(const struct turn_request *request) {
    struct region *region = container_region();
    container_join(request->uuid);
    int card = region ? account_find_card(region, request->uuid) : -1;
    if (card >= 0) token_bucket_mark_used(&region->cards[card], clock_now() + ARBITRATION_BUSY_GRACE_NS);
}

void turn_request_update(struct turn_request *request) {
    arbiter_link_update(&request->link, request->uuid);
    if (arbiter_link_is_up(&request->link)) show_use(request);
}

static unsigned share_of(const struct turn_request *request, enum contention contention) {
    unsigned own = container_share(request->uuid);
    if (own || contention == CONTENTION_NONE) return own;
    return contention == CONTENTION_ARBITRATED ? FULL_CORES : turn_limits_fallback(arbiter_link_page(&request->link));
}

/* The caller holds LOCK_REGION. */
static uint64_t take_with_others(struct turn_request *request, struct linked_view *view, uint64_t now) {
    uint32_t window;
    linked_turn_read(view, request->card, now);
    struct linked_card own = linked_turn_own(request->card, request->share, now);
    uint64_t repay = linked_cards_wait(&own, view->others, view->count, &window);
    uint64_t wait =
        token_bucket_take_linked(request->card, request->holder_id, &request->ticket, request->share, repay, now);
    request->is_in_window = wait == 0;
    request->batches = 0;
    if (wait == 0) linked_turn_open(request->card, window);
    return wait;
}

static const struct region_card *linked_card(const struct turn_request *request) {
    return __atomic_load_n(&request->linked_card, __ATOMIC_RELAXED);
}

bool turn_request_is_linked(const struct turn_request *request) { return linked_card(request) != NULL; }

/* Returns 0 if this process has the container's turn, or LOCK_REGION cannot be taken; otherwise the ns to wait before
 * the next attempt. */
static uint64_t take_from_bucket(struct turn_request *request, enum contention contention) {
    struct linked_view view = {0};
    bool may_be_linked = request->card && contention == CONTENTION_NONE && request->share < FULL_CORES;
    if (may_be_linked) view = linked_turn_look(request->card);
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (region) resolve_row(request);
    bool is_linked = region && request->card && view.cards != 0;
    __atomic_store_n(&request->linked_card, is_linked ? request->card : NULL, __ATOMIC_RELAXED);
    if (!region || !request->card || request->share >= FULL_CORES) return 0;
    uint64_t now = clock_now();
    if (may_be_linked)
        linked_turn_refresh(request->card);
    else
        linked_turn_stay_apart(request->card);
    if (is_linked) return take_with_others(request, &view, now);
    return token_bucket_take(request->card, request->holder_id, &request->ticket, request->share, now);
}

uint64_t turn_request_borrow(struct turn_request *request, uint64_t need, bool is_urgent) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region || !request->card) return OVERDRAFT_LOAN_MAX;
    return overdraft_lend(request->card, need, is_urgent, clock_now());
}

void turn_request_return_loan(const struct turn_request *request, uint64_t lent, uint64_t used) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (region && request->card) overdraft_return(request->card, lent, used, clock_now());
}

/* Without a turn, the loan is repaid before the next one: the debt may be no larger. */
static uint64_t borrow_without_turn(struct turn_request *request, uint64_t need) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region || !request->card || !overdraft_is_repaid(request->card)) return 0;
    return overdraft_lend(request->card, need, false, clock_now());
}

/* `is_sure`: another card waits for the launch, or may do so. Of other processes only the region says that. */
static bool seize_for_one(struct turn_request *request, bool is_sure, bool is_late) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    uint64_t now = clock_now();
    if (!region || (!is_sure && !linked_turn_is_other_awaited(request->card, is_late, now))) return false;
    return linked_turn_seize(request->card, request->holder_id, request->share, now);
}

/* One launch at a time, which may be the collective that another card waits for: if it were held back, what that one
 * spins would be charged. */
static bool goes_for_others(struct turn_request *request, const struct early_request *early, uint64_t since) {
    uint64_t waited = clock_now() - since;
    bool is_late = waited < LINKED_AFTER;
    if (waited < LATE_AFTER) return false;
    request->has_one_launch = seize_for_one(request, early->is_at_work_elsewhere(early->gate, is_late), is_late);
    return request->has_one_launch;
}

static bool goes_early(struct turn_request *request, struct early_request *early, uint64_t since) {
    if (!early) return false;
    if (turn_request_is_linked(request)) return goes_for_others(request, early, since);
    if (clock_now() < since + EARLY_AFTER || !early->is_work_elsewhere(early->gate)) return false;
    early->loan = borrow_without_turn(request, early->need);
    return early->loan != 0;
}

static uint64_t retry_in(const struct turn_request *request, const struct early_request *early, uint64_t since,
                         uint64_t wait) {
    bool is_work_elsewhere = early && early->is_work_elsewhere(early->gate);
    if (turn_request_is_linked(request)) return min_u64(wait, is_work_elsewhere ? LATE_RETRY : LINKED_RETRY);
    if (!is_work_elsewhere) return wait;
    uint64_t due = since + EARLY_AFTER;
    return min_u64(wait, max_u64(EARLY_RETRY, saturating_sub(due, clock_now())));
}

static void sleep_until_turn_end(const struct turn_request *request, uint32_t turns_seen, uint64_t ns) {
    uint64_t since = clock_now();
    system_futex_wait(&request->card->turns_ended, turns_seen, min_u64(ns, SLEEP_MAX), 0);
    activity_count_wait(request->activity, REGION_WAIT_SHARE, clock_now() - since);
}

static uint32_t turn_count(const struct turn_request *request) {
    return request->card ? __atomic_load_n(&request->card->turns_ended, __ATOMIC_ACQUIRE) : 0;
}

bool turn_request_is_at_hand(const struct turn_request *request) {
    bool is_held = request->arbiter_turn.number && !turn_request_is_asked_to_yield(request);
    return is_held || (!request->arbiter_turn.number && arbiter_link_turn(&request->link));
}

bool turn_request_is_arbitrated(const struct turn_request *request) { return request->arbiter_turn.number != 0; }

bool turn_request_is_joint(const struct turn_request *request) {
    return request->arbiter_turn.number && request->arbiter_turn.is_joint && request->share >= FULL_CORES;
}

bool turn_request_is_asked_to_yield(const struct turn_request *request) {
    return arbiter_turn_is_asked_to_yield(&request->arbiter_turn, &request->link);
}

uint64_t turn_request_free_at(const struct turn_request *request) {
    return arbiter_turn_free_at(&request->arbiter_turn, &request->link);
}

/* The arbiter lets one process at a time use the card. If another process of the container still holds the container's
 * turn, its work is draining. */
static void seize_container_turn(const struct turn_request *request, uint64_t waited) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region || !request->card) return;
    token_bucket_seize(request->card, request->holder_id, clock_now());
    token_bucket_keep_earned(request->card, request->share, waited);
}

/* Extends the container's turn while waiting, so that other processes of the container do not regard it as
 * abandoned. */
static bool await_arbiter_turn(struct turn_request *request) {
    uint64_t until = clock_now() + ARBITER_TIMEOUT;
    while (!arbiter_turn_take(&request->arbiter_turn, &request->link)) {
        uint64_t since = clock_now();
        if (request->card) token_bucket_extend_wait(request->card, request->holder_id, since + WAITING_EXTENSION);
        arbiter_turn_await(&request->arbiter_turn, &request->link);
        activity_count_wait(request->activity, REGION_WAIT_TURN, clock_now() - since);
        if (arbiter_link_update(&request->link, request->uuid) != CONTENTION_ARBITRATED || clock_now() > until)
            return false;
    }
    return true;
}

/* The arbiter counts the turns of a card, so after a turn of another client the numbers have a gap. */
static void begin_arbiter_turn(struct turn_request *request, uint64_t waited) {
    bool is_handover = request->arbiter_turn.number != request->arbiter_turn.last_returned + 1;
    activity_count_turn(request->activity, is_handover);
    seize_container_turn(request, waited);
}

void turn_request_resume(struct turn_request *request) {
    if (arbiter_link_contention(&request->link) != CONTENTION_ARBITRATED) return;
    uint32_t previous = request->arbiter_turn.number;
    if (!arbiter_turn_take(&request->arbiter_turn, &request->link)) {
        if (!request->arbiter_turn.is_next_requested) arbiter_turn_ask(&request->arbiter_turn, &request->link);
        return;
    }
    if (request->arbiter_turn.number != previous) begin_arbiter_turn(request, 0);
    turn_request_extend(request, clock_now() + ARBITRATION_BUSY_GRACE_NS);
}

static struct turn_limits take_arbiter_turn(struct turn_request *request) {
    uint32_t previous = request->arbiter_turn.number;
    uint64_t since = clock_now();
    if (!await_arbiter_turn(request)) return turn_limits_without_arbiter(request->share);
    if (request->arbiter_turn.number != previous) begin_arbiter_turn(request, clock_now() - since);
    if (turn_request_is_joint(request)) return turn_limits_joint(arbiter_turn_depth(&request->link));
    struct turn_limits limits =
        turn_limits_arbitrated(request->share, request->arbiter_turn.budget_left, arbiter_turn_depth(&request->link));
    limits.is_joint = request->arbiter_turn.is_joint;
    limits.end_by = arbiter_turn_until(&request->link);
    return limits;
}

static struct turn_limits limits_for(struct turn_request *request, enum contention contention) {
    if (request->has_one_launch) return turn_limits_one_launch();
    if (contention == CONTENTION_ARBITRATED) return take_arbiter_turn(request);
    arbiter_turn_give_back(&request->arbiter_turn, &request->link, 0, false);
    return contention == CONTENTION_UNARBITRATED ? turn_limits_without_arbiter(request->share)
                                                 : turn_limits_alone(request->share);
}

struct turn_limits turn_request_take(struct turn_request *request, struct early_request *early) {
    uint64_t since = clock_now();
    enum contention contention = arbiter_link_update(&request->link, request->uuid);
    request->is_in_window = request->has_one_launch = false;
    while ((request->share = share_of(request, contention)) != 0) {
        uint32_t turns_seen = turn_count(request);
        uint64_t wait = take_from_bucket(request, contention);
        if (wait == 0) break;
        arbiter_turn_give_back_all(&request->arbiter_turn, &request->link);
        if (goes_early(request, early, since)) break;
        sleep_until_turn_end(request, turns_seen, retry_in(request, early, since, wait));
        contention = arbiter_link_update(&request->link, request->uuid);
    }
    return limits_for(request, contention);
}

static bool is_in_batch(const struct turn_request *request, uint64_t now) {
    return launch_batch_goes_on(linked_turn_number(request->card), now);
}

enum linked_verdict turn_request_judge_linked(const struct turn_request *request, uint64_t used, bool fits,
                                              uint64_t now) {
    if (!request->is_in_window) return fits ? LINKED_FITS : LINKED_FULL;
    struct linked_use use = {.ns = used, .batches = request->batches};
    return linked_turn_judge(request->card, use, fits, is_in_batch(request, now), now);
}

void turn_request_note_linked(struct turn_request *request, uint64_t used, enum linked_verdict verdict, uint64_t now) {
    if (!turn_request_is_linked(request)) return;
    if (!is_in_batch(request, now)) request->batches++;
    launch_batch_note(linked_turn_number(request->card), now);
    struct linked_use use = {.ns = used, .batches = request->batches};
    if (request->is_in_window) linked_turn_note_launch(request->card, use, verdict);
}

void turn_request_extend(struct turn_request *request, uint64_t until) {
    if (request->card) token_bucket_extend_turn(request->card, request->holder_id, until);
}

void turn_request_note_linked_wait(const struct turn_request *request, bool is_begun) {
    const struct region_card *card = linked_card(request);
    if (card) linked_turn_note_awaited(card, is_begun);
}

void turn_request_note_awaited(struct turn_request *request, uint64_t until) {
    if (request->card) token_bucket_note_awaited(request->card, request->holder_id, until);
}

static bool has_tokens(const struct turn_request *request, uint64_t expected) {
    return request->share >= FULL_CORES || (request->card && token_bucket_covers(request->card, expected));
}

bool turn_request_is_unbounded(const struct turn_request *request, uint64_t expected) {
    return request->arbiter_turn.budget_left == UINT64_MAX && has_tokens(request, expected);
}

/* The region says when the work drains, because the arbiter may receive the message late. */
void turn_request_give_back(struct turn_request *request, uint64_t rest, bool is_awaited) {
    turn_request_extend(request, clock_now() + rest + ARBITRATION_BUSY_GRACE_NS);
    arbiter_turn_give_back(&request->arbiter_turn, &request->link, rest, is_awaited);
}

void turn_request_ask_next(struct turn_request *request, uint64_t expected) {
    bool may_ask = arbiter_link_contention(&request->link) == CONTENTION_ARBITRATED && has_tokens(request, expected);
    if (may_ask) arbiter_turn_ask(&request->arbiter_turn, &request->link);
}

void turn_request_note_drained(struct turn_request *request) {
    arbiter_turn_note_drained(&request->arbiter_turn, &request->link);
}

bool turn_request_await_next(struct turn_request *request, uint64_t ns) {
    if (!request->arbiter_turn.is_next_requested && !arbiter_link_turn(&request->link)) return false;
    arbiter_link_wait(&request->link, ns);
    return arbiter_link_turn(&request->link) != 0;
}

void turn_request_end(struct turn_request *request, uint64_t cost) {
    arbiter_turn_spend(&request->arbiter_turn, &request->link, cost);
    turn_request_charge(request, cost);
}

/* Only the arbiter limits the process, and its turn goes on. Without the container's turn, `busy_until` would no longer
 * be written, and the arbiter would revoke the turn of a card that is busy. */
static bool goes_on(const struct turn_request *request) {
    return request->share >= FULL_CORES && request->arbiter_turn.number;
}

/* False if LOCK_REGION cannot be taken. */
static bool charge_bucket(struct turn_request *request) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region) return false;
    uint64_t cost = __atomic_exchange_n(&request->uncharged_ns, 0, __ATOMIC_RELAXED);
    token_bucket_charge(request->card, request->holder_id, request->share, cost, clock_now());
    if (goes_on(request)) token_bucket_keep_turn(request->card, request->holder_id);
    return true;
}

void turn_request_charge(struct turn_request *request, uint64_t cost) {
    if (!request->card || request->share == 0) return;
    turn_request_charge_later(request, cost);
    if (charge_bucket(request)) system_futex_wake(&request->card->turns_ended, 1, 0);
}

void turn_request_charge_later(struct turn_request *request, uint64_t cost) {
    __atomic_fetch_add(&request->uncharged_ns, cost, __ATOMIC_RELAXED);
}

void turn_request_count_wait(const struct turn_request *request, uint64_t ns) {
    struct region_card *card = __atomic_load_n(&request->card, __ATOMIC_RELAXED);
    if (card) token_bucket_count_wait(card, ns);
}

struct region_activity *turn_request_activity(const struct turn_request *request) {
    return __atomic_load_n(&request->activity, __ATOMIC_RELAXED);
}
