#include "charge/reconcile/reaping.h"

#include "charge/reconcile/reconcile.h"
#include "common/clock.h"
#include "container/container.h"
#include "region/account.h"
#include "region/identity.h"
#include "region/memory_exports.h"

/* About 0.1 s, in ticks. Bounds how long the view shows a dead process's memory; before a reservation is refused, dead
 * processes are looked for at once. */
static uint64_t reaping_interval(void) { return clock_ticks_quarter_second() / 2; }

/* False where the lock cannot be had: the next measurement looks again. */
static bool is_any_orphaned(struct region *region) {
    HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
    for (int card = 0; locked && card < REGION_CARDS; card++)
        if (account_has_orphaned_memory(locked, card)) return true;
    return false;
}

/* Memory of a dead process that others have imported is charged to the card when its slot is cleared. What NVML counts
 * for the others is charged to them; so it is asked again after that. */
unsigned reaping_now(struct region *region, unsigned own_calls) {
    struct identity self = container_self();
    if (!identity_any_dead(region, &self)) return 0;
    bool is_reconciled = reconcile_every_card(own_calls);
    if (!is_reconciled && memory_exports_is_incomplete(region)) return 0;
    unsigned reaped = identity_reap(region, &self, REGION_LOCK_MS);
    if (reaped && is_any_orphaned(region)) reconcile_every_card(own_calls);
    return reaped;
}

bool reaping_if_due(struct region *region) {
    static uint64_t due;
    if (!clock_take_due(&due, reaping_interval())) return false;
    reaping_now(region, 0);
    return true;
}
