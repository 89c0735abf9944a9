/* How far turns may still run over their budget while others wait. Pure: the clock is an argument, in ns. */
#ifndef VGPU_PATIENCE_H
#define VGPU_PATIENCE_H

#include <stdint.h>

struct patience {
    uint64_t left;
    uint64_t refilled_at;
};

struct patience patience_made(uint64_t now);

/* It comes back slowly, so that who never ends a turn by himself takes a small part of the card from the others. */
void patience_refill(struct patience *patience, uint64_t now);

void patience_use(struct patience *patience, uint64_t ns);

#endif
