#include "reaping.h"

#include <time.h>

#include "charge.h"
#include "identity.h"
#include "place.h"
#include "settle.h"

/* How long the view may show what a dead process held; a reservation that would be refused looks at once. */
enum { REAP_EVERY_MS = 100 };

/* Whether the last look for dead processes is long enough ago; the first who asks is the one to look. */
static bool is_due(void) {
    static uint64_t due_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    uint64_t due = __atomic_load_n(&due_ms, __ATOMIC_RELAXED);
    return now_ms >= due && __atomic_compare_exchange_n(&due_ms, &due, now_ms + REAP_EVERY_MS, false, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED);
}

unsigned reaping_now(struct region *region, unsigned own) {
    struct identity who = place_self();
    if (!identity_any_dead(region, &who)) return 0;
    settle_every_card(own);
    return identity_reap(region, &who, CHARGE_LOCK_MS);
}

bool reaping_if_due(struct region *region) {
    if (!is_due()) return false;
    reaping_now(region, 0);
    return true;
}
