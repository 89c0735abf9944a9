/* Freeing of allocations, each by its kind. */
#ifndef SIMGPU_CUDA_MEMORY_ALLOCATION_FREE_H
#define SIMGPU_CUDA_MEMORY_ALLOCATION_FREE_H

#include <cuda.h>
#include <stdbool.h>

#include "cuda/allocation/allocation.h"

/* Whether cuMemFree may free the allocation: all but host memory and memory that cuIpcCloseMemHandle closes. */
bool allocation_is_freeable(const struct allocation *allocation);
/* Gives back what the allocation takes, without its entry in the table. */
void allocation_give_back(const struct allocation *allocation);
CUresult allocation_free(struct allocation *allocation);
/* Frees what ends with the context. */
void allocations_free_of(CUcontext context);

#endif
