/* Charges what changed for memory by handle (backings.h). */
#ifndef VGPU_HOOKS_MEMORY_PHYSICAL_CHARGE_H
#define VGPU_HOOKS_MEMORY_PHYSICAL_CHARGE_H

#include "books/physical_memory.h"

/* With the end of a reference, in a span (charge.h). */
void physical_charge_apply(struct physical_memory change);

/* With the end of descriptors, which nobody tells us of: anywhere, from time to time. */
void physical_charge_sweep(void);

#endif
