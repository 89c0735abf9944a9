#include "region/token_bucket.h"

#include "common/arithmetic.h"
#include "region/windows.h"

enum { FULL = 100 };

/* Debts and pauses beyond these are of no use, and keep the arithmetic small whatever stands in the region. */
#define OWED_MOST   (10000 * (int64_t)NS_PER_MS)
#define PAUSE_MOST  (1000000 * NS_PER_MS)
#define FIRST_LEASE (2 * NS_PER_MS)

/* Who does not come for his turn in this time loses it; the others look again so often. */
#define LATE (1 * NS_PER_MS)
#define LOOK (NS_PER_MS / 4)

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    if (value < least) return least;
    return value > most ? most : value;
}

/* More than may be saved up is kept as long as a turn lasts, for what it used is taken off only at its end. */
static void refill(struct region_card *card, unsigned share, uint64_t now) {
    bool is_known = card->refilled_at != 0 && card->refilled_at <= now;
    uint64_t since = is_known ? now - card->refilled_at : 0;
    if (since > PAUSE_MOST) since = PAUSE_MOST;
    card->tokens = clamp(card->tokens, -OWED_MOST, OWED_MOST) + (int64_t)(since * share / FULL);
    card->refilled_at = now;
}

static void cap(struct region_card *card) {
    card->tokens = clamp(card->tokens, -OWED_MOST, (int64_t)TOKEN_BUCKET_BURST_CAP);
}

static uint64_t leased_for(const struct region_card *card, uint64_t now) {
    uint64_t until = __atomic_load_n(&card->leased_until, __ATOMIC_RELAXED);
    return until > now && until - now <= TOKEN_BUCKET_TURN_MAX ? until - now : 0;
}

static uint64_t until_repaid(const struct region_card *card, unsigned share) {
    return card->tokens < 0 ? (uint64_t)-card->tokens * FULL / share + 1 : 0;
}

/* Numbers go round, and what stands in the region is anybody's. */
static void draw(struct region_card *card, uint32_t *ticket) {
    if (card->tickets - card->served > REGION_SLOTS) card->served = card->tickets;
    bool is_waiting = *ticket != 0 && *ticket - card->served - 1 < card->tickets - card->served;
    if (is_waiting) return;
    card->tickets += card->tickets == UINT32_MAX ? 2 : 1;
    *ticket = card->tickets;
}

static bool is_next(struct region_card *card, uint32_t ticket, uint64_t now) {
    if (card->free_since == 0 || card->free_since > now) card->free_since = now;
    if (ticket != card->served + 1 && now - card->free_since > LATE) {
        card->served++;
        card->free_since = now;
    }
    return ticket == card->served + 1;
}

/* Until nobody has the turn and nothing is owed. */
static uint64_t until_free(struct region_card *card, uint32_t who, unsigned share, uint64_t now) {
    bool is_others = card->holder != 0 && card->holder != who;
    uint64_t wait = is_others ? leased_for(card, now) : 0;
    refill(card, share, now);
    if (wait) return wait;
    cap(card);
    return until_repaid(card, share);
}

static void hand(struct region_card *card, uint32_t who, uint64_t now) {
    __atomic_store_n(&card->holder, who, __ATOMIC_RELAXED);
    __atomic_store_n(&card->leased_until, now + FIRST_LEASE, __ATOMIC_RELAXED);
}

uint64_t token_bucket_take(struct region_card *card, uint32_t who, uint32_t *ticket, unsigned share, uint64_t now) {
    draw(card, ticket);
    uint64_t wait = until_free(card, who, share, now);
    if (!wait && !is_next(card, *ticket, now)) return LOOK;
    card->free_since = 0;
    if (wait) return wait;
    card->served = *ticket;
    *ticket = 0;
    hand(card, who, now);
    return 0;
}

void token_bucket_seize(struct region_card *card, uint32_t who, uint64_t now) {
    card->free_since = 0;
    hand(card, who, now);
}

bool token_bucket_covers(const struct region_card *card, uint64_t expected) {
    uint32_t tickets = __atomic_load_n(&card->tickets, __ATOMIC_RELAXED);
    bool is_awaited = tickets != __atomic_load_n(&card->served, __ATOMIC_RELAXED);
    return !is_awaited && __atomic_load_n(&card->tokens, __ATOMIC_RELAXED) > (int64_t)expected;
}

void token_bucket_show_use(struct region_card *card, uint64_t until) {
    if (__atomic_load_n(&card->leased_until, __ATOMIC_RELAXED) < until)
        __atomic_store_n(&card->leased_until, until, __ATOMIC_RELAXED);
}

void token_bucket_extend_turn(struct region_card *card, uint32_t who, uint64_t until) {
    if (__atomic_load_n(&card->holder, __ATOMIC_RELAXED) == who)
        __atomic_store_n(&card->leased_until, until, __ATOMIC_RELAXED);
}

/* What is left of `cost` without the time that is charged already. */
static uint64_t not_charged_yet(const struct region_card *card, uint64_t cost, uint64_t now) {
    if (card->charged_until > now) return cost;
    uint64_t since = now - card->charged_until;
    return cost < since ? cost : since;
}

void token_bucket_charge(struct region_card *card, uint32_t who, unsigned share, uint64_t cost, uint64_t now) {
    uint64_t fresh = not_charged_yet(card, cost, now);
    card->charged_until = now;
    refill(card, share, now);
    card->tokens -= fresh < (uint64_t)OWED_MOST ? (int64_t)fresh : OWED_MOST;
    cap(card);
    __atomic_store_n(&card->gpu_ns, card->gpu_ns + fresh, __ATOMIC_RELAXED);
    windows_update(card, now);
    if (card->holder == who) card->holder = 0;
    __atomic_fetch_add(&card->turns, 1, __ATOMIC_RELEASE);
}

void token_bucket_count_wait(struct region_card *card, uint64_t ns) {
    uint64_t us = ns / 1000;
    uint32_t wait = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
    uint32_t longest = __atomic_load_n(&card->longest_wait_us, __ATOMIC_RELAXED);
    while (wait > longest && !__atomic_compare_exchange_n(&card->longest_wait_us, &longest, wait, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_add(&card->throttled_ns, ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&card->delayed, 1, __ATOMIC_RELAXED);
}
