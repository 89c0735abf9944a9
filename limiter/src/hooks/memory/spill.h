/* Oversubscription, if the limits ask for it (memory policy `spill`): an allocation within the limit is served from
 * managed memory when the card itself is full. It is charged in full, so the limit holds. See docs/adr/0016.
 *
 * Only plain allocations (cuMemAlloc, cuMemAllocPitch) can spill. Physical memory, arrays and pools have no managed
 * form that later calls would accept: cuMemFreeAsync, for example, takes no managed memory. */
#ifndef VGPU_HOOKS_MEMORY_SPILL_H
#define VGPU_HOOKS_MEMORY_SPILL_H

#include "charge/reserve/attempt.h"
#include "driver/abi.h"

/* Called after the driver's call, with its `result`. If that is CUDA_ERROR_OUT_OF_MEMORY and the policy allows it,
 * allocates managed memory and returns that result; otherwise, and for a refused attempt, returns `result`. The caller
 * holds no lock. */
CUresult spill(struct attempt *attempt, CUresult result, CUdeviceptr *pointer, size_t bytes);

#endif
