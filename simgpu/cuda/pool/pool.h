/* Memory pools: what they reserve of a card and what is used of it. */
#ifndef SIMGPU_CUDA_POOL_POOL_H
#define SIMGPU_CUDA_POOL_POOL_H

#include <cuda.h>
#include <stdint.h>

#include "cuda/pool/pool_state.h"

CUmemoryPool pool_make(CUdevice ordinal); /* NULL when out of memory */
/* Counts `bytes` as used, and reserves blocks where the pool has too few. */
CUresult pool_charge(CUmemoryPool pool, uint64_t bytes);
void pool_release(CUmemoryPool pool, uint64_t bytes);
/* Gives back reserved blocks that are not used, down to `keep` bytes. */
void pool_trim(CUmemoryPool pool, uint64_t keep);
/* Trims every pool of the device to its threshold; each synchronization does so. */
void pools_trim(CUdevice ordinal);
/* Frees a pool that the program destroyed and of which no allocation is left. */
void pool_free_if_unused(CUmemoryPool pool);

#endif
