#include "region/token_bucket.h"

#include "common/share_tokens.h"
#include "region/windows.h"

enum { FULL_SHARE = 100 }; /* percent */

/* A turn expires after this time unless its holder extends it. */
#define INITIAL_TURN (2 * NS_PER_MS)

/* A waiting process that does not take a free turn within this time is skipped. */
#define TAKE_TIMEOUT (1 * NS_PER_MS)

/* A container that has been charged nothing for this long was idle, and loses what it had kept. */
#define IDLE_AFTER (100 * NS_PER_MS)

/* How often a process that waits behind another one in the queue tries again. */
#define RETRY_INTERVAL (NS_PER_MS / 4)

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    if (value < least) return least;
    return value > most ? most : value;
}

int64_t token_bucket_tokens(const struct region_card *card, unsigned share, uint64_t now) {
    return share_tokens_at(card->tokens, card->refilled_at, share, now);
}

/* Does not cap the tokens: the use of an open turn is charged at its end, so until then tokens may exceed the cap. */
static void refill(struct region_card *card, unsigned share, uint64_t now) {
    card->tokens = token_bucket_tokens(card, share, now);
    card->refilled_at = now;
}

static void cap(struct region_card *card) {
    int64_t burst_cap = (int64_t)TOKEN_BUCKET_BURST_CAP,
            kept = (int64_t)min_u64(card->kept_tokens, TOKEN_BUCKET_WAIT_MAX);
    card->tokens = clamp(card->tokens, -SHARE_DEBT_MAX, burst_cap + kept);
    card->kept_tokens = (uint64_t)clamp(card->tokens - burst_cap, 0, kept);
}

static void keep(struct region_card *card, uint64_t earned, bool was_long) {
    if (card->kept_tokens == 0) card->kept_max = 0;
    if (was_long) card->kept_max = max_u64(card->kept_max, earned);
    uint64_t kept = min_u64(card->kept_tokens, TOKEN_BUCKET_WAIT_MAX);
    card->kept_tokens = min_u64(kept + earned, min_u64(card->kept_max, TOKEN_BUCKET_WAIT_MAX));
}

/* The turn that begins ends by the tokens that are in the region (`token_bucket_covers`): without those of the wait it
 * would end after the burst cap, and the neighbour would begin its next long kernel. In a short wait another process of
 * the container may have used what has not been charged yet, so nothing is capped then. */
void token_bucket_keep_earned(struct region_card *card, unsigned share, uint64_t waited, uint64_t now) {
    bool was_long = waited >= TOKEN_BUCKET_LONG_WAIT;
    keep(card, min_u64(waited, TOKEN_BUCKET_WAIT_MAX) * share / FULL_SHARE, was_long);
    if (!was_long) return;
    refill(card, share, now);
    cap(card);
}

static void forget_kept_when_idle(struct region_card *card, uint64_t now) {
    if (card->holder == 0 && now > card->charged_until + IDLE_AFTER) card->kept_tokens = 0;
}

static uint64_t remaining_turn(const struct region_card *card, uint64_t now) {
    uint64_t until = __atomic_load_n(&card->busy_until, __ATOMIC_RELAXED);
    return until > now && until - now <= TOKEN_BUCKET_TURN_MAX ? until - now : 0;
}

/* Gives the caller a ticket unless it waits with a valid one. Compares numbers modulo 2^32, because they wrap around,
 * and resets the queue where its length is impossible, because the region's content is not trusted. */
static void draw_ticket(struct region_card *card, uint32_t *ticket) {
    if (card->tickets - card->served > REGION_SLOTS) card->served = card->tickets;
    bool is_waiting = *ticket != 0 && *ticket - card->served - 1 < card->tickets - card->served;
    if (is_waiting) return;
    card->tickets += card->tickets == UINT32_MAX ? 2 : 1;
    *ticket = card->tickets;
}

static bool is_served_next(struct region_card *card, uint32_t ticket, uint64_t now) {
    if (card->free_since == 0 || card->free_since > now) card->free_since = now;
    if (ticket != card->served + 1 && now - card->free_since > TAKE_TIMEOUT) {
        card->served++;
        card->free_since = now;
    }
    return ticket == card->served + 1;
}

/* Time in ns until no other process has the turn. */
static uint64_t time_to_free(struct region_card *card, uint32_t process, unsigned share, uint64_t now) {
    bool is_held_by_other = card->holder != 0 && card->holder != process;
    uint64_t wait = is_held_by_other ? remaining_turn(card, now) : 0;
    refill(card, share, now);
    if (wait) return wait;
    forget_kept_when_idle(card, now);
    cap(card);
    return 0;
}

static void give_turn(struct region_card *card, uint32_t process, uint64_t now) {
    __atomic_store_n(&card->holder, process, __ATOMIC_RELAXED);
    __atomic_store_n(&card->busy_until, now + INITIAL_TURN, __ATOMIC_RELAXED);
    __atomic_store_n(&card->awaited_until, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&card->is_waiting, 0, __ATOMIC_RELAXED);
}

static uint64_t take(struct region_card *card, uint32_t process, uint32_t *ticket, uint64_t wait, uint64_t now) {
    if (!wait && !is_served_next(card, *ticket, now)) return RETRY_INTERVAL;
    card->free_since = 0;
    if (wait) return wait;
    card->served = *ticket;
    *ticket = 0;
    give_turn(card, process, now);
    return 0;
}

uint64_t token_bucket_take(struct region_card *card, uint32_t process, uint32_t *ticket, unsigned share, uint64_t now) {
    draw_ticket(card, ticket);
    uint64_t wait = time_to_free(card, process, share, now);
    return take(card, process, ticket, wait ? wait : share_tokens_time_to_repay(card->tokens, share), now);
}

uint64_t token_bucket_take_linked(struct region_card *card, uint32_t process, uint32_t *ticket, unsigned share,
                                  uint64_t wait, uint64_t now) {
    draw_ticket(card, ticket);
    return take(card, process, ticket, max_u64(wait, time_to_free(card, process, share, now)), now);
}

void token_bucket_seize(struct region_card *card, uint32_t process, uint64_t now) {
    card->free_since = 0;
    give_turn(card, process, now);
}

bool token_bucket_covers(const struct region_card *card, uint64_t expected) {
    uint32_t tickets = __atomic_load_n(&card->tickets, __ATOMIC_RELAXED);
    bool is_awaited = tickets != __atomic_load_n(&card->served, __ATOMIC_RELAXED);
    return !is_awaited && __atomic_load_n(&card->tokens, __ATOMIC_RELAXED) > (int64_t)expected;
}

void token_bucket_mark_used(struct region_card *card, uint64_t until) {
    if (__atomic_load_n(&card->busy_until, __ATOMIC_RELAXED) < until)
        __atomic_store_n(&card->busy_until, until, __ATOMIC_RELAXED);
}

static void extend_turn(struct region_card *card, uint32_t process, uint64_t until, uint32_t is_waiting) {
    if (__atomic_load_n(&card->holder, __ATOMIC_RELAXED) != process) return;
    __atomic_store_n(&card->is_waiting, is_waiting, __ATOMIC_RELAXED);
    __atomic_store_n(&card->busy_until, until, __ATOMIC_RELAXED);
}

void token_bucket_extend_turn(struct region_card *card, uint32_t process, uint64_t until) {
    extend_turn(card, process, until, 0);
}

void token_bucket_extend_wait(struct region_card *card, uint32_t process, uint64_t until) {
    extend_turn(card, process, until, 1);
}

void token_bucket_note_awaited(struct region_card *card, uint32_t process, uint64_t until) {
    if (__atomic_load_n(&card->holder, __ATOMIC_RELAXED) == process)
        __atomic_store_n(&card->awaited_until, until, __ATOMIC_RELAXED);
}

/* The part of `cost` that lies after the last charge. */
static uint64_t uncharged_part(const struct region_card *card, uint64_t cost, uint64_t now) {
    if (card->charged_until > now) return cost;
    uint64_t since = now - card->charged_until;
    return cost < since ? cost : since;
}

void token_bucket_charge(struct region_card *card, uint32_t process, unsigned share, uint64_t cost, uint64_t now) {
    uint64_t uncharged = uncharged_part(card, cost, now);
    card->charged_until = now;
    refill(card, share, now);
    card->tokens -= uncharged < (uint64_t)SHARE_DEBT_MAX ? (int64_t)uncharged : SHARE_DEBT_MAX;
    cap(card);
    __atomic_store_n(&card->gpu_ns, card->gpu_ns + uncharged, __ATOMIC_RELAXED);
    windows_update(card, now);
    if (card->holder == process) card->holder = 0;
    __atomic_fetch_add(&card->turns_ended, 1, __ATOMIC_RELEASE);
}

void token_bucket_keep_turn(struct region_card *card, uint32_t process) {
    __atomic_store_n(&card->holder, process, __ATOMIC_RELAXED);
}

void token_bucket_count_wait(struct region_card *card, uint64_t ns) {
    uint64_t us = ns / 1000;
    uint32_t wait = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
    uint32_t longest = __atomic_load_n(&card->longest_wait_us, __ATOMIC_RELAXED);
    while (wait > longest && !__atomic_compare_exchange_n(&card->longest_wait_us, &longest, wait, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_add(&card->throttled_ns, ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&card->delayed_launches, 1, __ATOMIC_RELAXED);
}
