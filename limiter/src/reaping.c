#include "reaping.h"

#include "charge.h"
#include "identity.h"
#include "moment.h"
#include "place.h"
#include "settle.h"

/* How long the view may show what a dead process held; a reservation that would be refused looks at once. */
#define REAP_EVERY (NS_PER_SECOND / 10)

unsigned reaping_now(struct region *region, unsigned own) {
    struct identity who = place_self();
    if (!identity_any_dead(region, &who)) return 0;
    settle_every_card(own);
    return identity_reap(region, &who, CHARGE_LOCK_MS);
}

bool reaping_if_due(struct region *region) {
    static uint64_t due;
    if (!moment_take_due(&due, REAP_EVERY)) return false;
    reaping_now(region, 0);
    return true;
}
