#include "charge/reconcile/reaping.h"

#include "charge/reconcile/reconcile.h"
#include "common/clock.h"
#include "container/container.h"
#include "region/identity.h"

/* About 0.1 s, in ticks. Bounds how long the view shows a dead process's memory; before a reservation is refused, dead
 * processes are looked for at once. */
static uint64_t reaping_interval(void) { return clock_ticks_quarter_second() / 2; }

unsigned reaping_now(struct region *region, unsigned own_calls) {
    struct identity self = container_self();
    if (!identity_any_dead(region, &self)) return 0;
    reconcile_every_card(own_calls);
    return identity_reap(region, &self, REGION_LOCK_MS);
}

bool reaping_if_due(struct region *region) {
    static uint64_t due;
    if (!clock_take_due(&due, reaping_interval())) return false;
    reaping_now(region, 0);
    return true;
}
