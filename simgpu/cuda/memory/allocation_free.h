/* Freeing of allocations, each by its kind. */
#ifndef SIMGPU_CUDA_MEMORY_ALLOCATION_FREE_H
#define SIMGPU_CUDA_MEMORY_ALLOCATION_FREE_H

#include "cuda/allocation/allocation.h"

#include <cuda.h>
#include <stdbool.h>

/* Whether cuMemFree may free it: not host memory, nor what cuIpcCloseMemHandle closes. */
bool allocation_is_freeable(const Allocation *allocation);
/* Gives back what the allocation takes, without its entry in the table. */
void allocation_give_back(const Allocation *allocation);
CUresult allocation_free(Allocation *allocation);
/* Frees what ends with the context. */
void allocations_free_of(CUcontext context);

#endif
