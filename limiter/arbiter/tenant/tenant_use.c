#include "arbiter/tenant/tenant_use.h"

#include "common/arithmetic.h"

/* A container charges a turn that the arbiter does not ask back in steps of 50 ms, and a kernel when it has ended. So
 * what is read may be behind by this much, and then grow by more than the time since the last reading. */
#define LAG_MAX (1000 * NS_PER_MS)

enum { FULL = 100, FULL_PERMILLE = 1000, PERMILLE_OF_PERCENT = 10 };

/* Less is less than this percentage of what it is compared with, and at least SLACK permille less: requests at random
 * moments, charges at the ends of a measurement, and the changes from one time slice to the next make that much of a
 * difference. */
enum { LESS = 90, SLACK = 20 };

/* A tenant with one small request in a measurement wants this much of the time, in permille. */
enum { ASKS = 2 };

/* Clearly more than a percent of the card, in permille. */
enum { AHEAD_PERMILLE = 11 };

/* A tenant that waits more often than this for each unit of its kernels' time, in permille, hardly uses the card. */
enum { WAITING_MAX = 1000 * FULL_PERMILLE };

static uint64_t growth(struct tenant_counter *counter, uint64_t value, uint64_t passed) {
    counter->possible_ns = min_u64(counter->possible_ns + passed, LAG_MAX);
    uint64_t grown = min_u64(saturating_sub(value, counter->value), counter->possible_ns);
    counter->possible_ns -= grown;
    counter->value = value;
    return grown;
}

uint64_t tenant_use_read(struct tenant_use *use, uint64_t gpu_ns, uint64_t waited_ns, uint64_t now) {
    uint64_t passed = use->read_at ? saturating_sub(now, use->read_at) : 0;
    uint64_t used = growth(&use->gpu, gpu_ns, passed);
    use->used_ns += used;
    use->waiting_ns += growth(&use->waited, waited_ns, passed);
    recent_time_age(&use->recent, now);
    recent_time_add(&use->recent, used);
    use->read_at = now;
    return used;
}

void tenant_use_begin(struct tenant_use *use) {
    use->used_ns = use->waiting_ns = 0;
    use->is_new = false;
}

static uint32_t of_time(uint64_t ns, uint64_t passed) { return permille_of(ns, passed, FULL_PERMILLE); }

static uint32_t served(const struct tenant_use *use) { return of_time(use->used_ns, use->waiting_ns); }

void tenant_use_note_apart(struct tenant_use *use, uint64_t passed) {
    use->apart_permille = of_time(use->used_ns, passed);
    use->apart_served = served(use);
    use->apart_waiting = permille_of(use->waiting_ns, use->used_ns, WAITING_MAX);
}

/* What a tenant is not to have less of jointly: its guarantee, or what it had apart if that is less; without a
 * guarantee, half of that. */
static uint32_t least_of(uint32_t guarantee, uint32_t apart) {
    return guarantee ? (uint32_t)min_u64((uint64_t)guarantee * PERMILLE_OF_PERCENT, apart) : apart / 2;
}

static bool is_less(uint32_t joint, uint32_t least) { return joint + SLACK < least * LESS / FULL; }

/* How it was served while it waited says little of one that hardly waited. */
static bool is_judged(const struct tenant_use *use, uint32_t guarantee, uint64_t passed) {
    return guarantee && of_time(use->waiting_ns, passed) >= SLACK;
}

/* One that rests has less, and is not behind: it would have no more if it had not had to wait. */
static bool has_less(const struct tenant_use *use, uint32_t guarantee, uint64_t passed) {
    uint32_t least = least_of(guarantee, use->apart_permille);
    uint64_t wanted = saturating_add(use->used_ns, use->waiting_ns);
    return is_less(of_time(use->used_ns, passed), least) && !is_less(of_time(wanted, passed), least);
}

bool tenant_use_is_behind(const struct tenant_use *use, uint32_t guarantee, uint64_t passed) {
    return has_less(use, guarantee, passed) ||
           (is_judged(use, guarantee, passed) && is_less(served(use), least_of(guarantee, use->apart_served)));
}

/* A program that launches while its kernels run waits for less than they take, and still for longer than before. */
static uint64_t excess_waiting(const struct tenant_use *use) {
    return saturating_sub(use->waiting_ns, use->used_ns * use->apart_waiting / FULL_PERMILLE);
}

static bool is_within(const struct tenant_use *use, uint32_t guarantee, uint64_t passed) {
    return of_time(use->used_ns, passed) < guarantee * PERMILLE_OF_PERCENT;
}

bool tenant_use_asks_within(const struct tenant_use *use, uint32_t guarantee, uint64_t passed) {
    uint64_t wanted = saturating_add(use->used_ns, use->waiting_ns);
    return of_time(wanted, passed) >= ASKS && is_within(use, guarantee, passed);
}

/* Where nothing is known of how it waited apart, or it has more than its guarantee, it is not judged. */
bool tenant_use_is_slower(const struct tenant_use *use, uint32_t guarantee, uint64_t passed, uint64_t window) {
    if (!use->apart_permille || !is_within(use, guarantee, passed) || !is_judged(use, guarantee, passed)) return false;
    uint64_t excess = excess_waiting(use);
    return of_time(excess, window) > SLACK && excess > use->waiting_ns / FULL * (FULL - LESS);
}

bool tenant_use_is_ahead(const struct tenant_use *use, uint32_t guarantee, uint64_t window) {
    return of_time(use->used_ns, window) > guarantee * AHEAD_PERMILLE + SLACK;
}

bool tenant_use_is_unseen(const struct tenant_use *use, uint32_t guarantee, uint64_t passed) {
    bool waited_apart = (uint64_t)use->apart_permille * use->apart_waiting >= (uint64_t)SLACK * FULL_PERMILLE;
    return waited_apart && guarantee && !is_judged(use, guarantee, passed);
}
