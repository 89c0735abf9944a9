#include "reaping.h"

#include "charge.h"
#include "identity.h"
#include "moment.h"
#include "place.h"
#include "settle.h"

/* How long the view may show what a dead process held, about a tenth of a second; a reservation that would be refused
 * looks at once. */
static uint64_t reap_every(void) { return moment_ticks_between_looks() / 2; }

unsigned reaping_now(struct region *region, unsigned own) {
    struct identity who = place_self();
    if (!identity_any_dead(region, &who)) return 0;
    settle_every_card(own);
    return identity_reap(region, &who, CHARGE_LOCK_MS);
}

bool reaping_if_due(struct region *region) {
    static uint64_t due;
    if (!moment_take_due(&due, reap_every())) return false;
    reaping_now(region, 0);
    return true;
}
