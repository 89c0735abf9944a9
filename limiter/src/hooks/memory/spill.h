/* Oversubscription by choice: where the limits say so (`memory_policy`), an allocation that is within the limit while
 * the card itself is full is served from managed memory. It is charged in full, so the limit holds as ever.
 *
 * Only what a plain allocation gives can be served so: no memory with a handle, no arrays, and not what comes from a
 * pool, whose cuMemFreeAsync takes no managed memory. Those stay refused. */
#ifndef VGPU_HOOKS_MEMORY_SPILL_H
#define VGPU_HOOKS_MEMORY_SPILL_H

#include "charge/attempt.h"
#include "driver/abi.h"

/* After the driver's call: where it was refused for want of memory, tries it so; another answer stands. */
CUresult spill(struct attempt *attempt, CUresult result, CUdeviceptr *pointer, size_t bytes);

#endif
