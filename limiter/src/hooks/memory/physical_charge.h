/* Charges what changed for memory by handle (backings.h). */
#ifndef VGPU_CHANGES_H
#define VGPU_CHANGES_H

#include "books/physical_memory.h"

/* With the end of a reference, in a span (charge.h). */
void changes_charge(struct backing change);

/* With the end of descriptors, which nobody tells us of: anywhere, from time to time. */
void changes_look(void);

#endif
