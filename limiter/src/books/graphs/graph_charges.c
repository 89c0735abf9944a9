#include "books/graphs/graph_charges.h"

#include <string.h>

#include "process/fork.h"
#include "process/lock.h"
#include "region/region.h"

/* By device; under LOCK_GRAPH_CHARGES. */
static struct graph_charge {
    uint64_t bytes;
    int card;
} charges[REGION_CARDS];

static void forget(void) { memset(charges, 0, sizeof charges); }
FORGET_IN_CHILD(forget);

bool graph_charges_has(int device) {
    HOLD_LOCK(LOCK_GRAPH_CHARGES);
    return charges[device].bytes != 0;
}

uint64_t graph_charges_set(int device, int card, uint64_t reserved_ahead, uint64_t reserved_now) {
    HOLD_LOCK(LOCK_GRAPH_CHARGES);
    uint64_t charged_total = charges[device].bytes + reserved_ahead;
    charges[device] = (struct graph_charge){reserved_now, card};
    return charged_total > reserved_now ? charged_total - reserved_now : 0;
}

uint64_t graph_charges_on(int card) {
    HOLD_LOCK(LOCK_GRAPH_CHARGES);
    uint64_t bytes = 0;
    for (int device = 0; device < REGION_CARDS; device++)
        if (charges[device].card == card) bytes += charges[device].bytes;
    return bytes;
}
