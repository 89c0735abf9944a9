/* The container's turn on one card, as this process asks for it: waits until the tokens and the other processes allow
 * it. Who grants turns is known here alone. */
#ifndef VGPU_LEASE_H
#define VGPU_LEASE_H

#include "region.h"

struct lease {
    uint8_t uuid[UUID_SIZE];
    struct region_card *card; /* NULL until the first turn, or where the region has no row left */
    uint32_t who;
    uint32_t ticket; /* for a turn that is waited for */
    unsigned share;  /* percent, as of the turn's beginning */
    uint64_t unpaid; /* used, and not yet charged: the region's lock could not be had */
};

/* Waits for the turn. Returns the share in percent, or 0 where nothing limits this process on the card any more: then
 * there is no turn. Where the region's lock is stuck the turn is taken without it. */
unsigned lease_take(struct lease *lease);

/* The turn will be needed until then. */
void lease_extend(struct lease *lease, uint64_t until);

/* Ends the turn, which used so many ns of the card. */
void lease_end(struct lease *lease, uint64_t cost);

/* Counts a launch that waited so long. */
void lease_count_wait(struct lease *lease, uint64_t ns);

#endif
