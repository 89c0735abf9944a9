/* Charges what changed for memory by handle (backings.h). */
#ifndef VGPU_HOOKS_MEMORY_PHYSICAL_CHARGE_H
#define VGPU_HOOKS_MEMORY_PHYSICAL_CHARGE_H

#include "books/physical_memory.h"
#include "charge/memory_class.h"

/* With the end of a reference, in a span (charge.h). */
void physical_charge_apply(struct physical_memory change);

/* Releases the charge of memory whose last exported descriptor was closed. */
extern const struct memory_class physical_memory_class;

#endif
