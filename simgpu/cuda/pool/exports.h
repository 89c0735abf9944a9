/* Exported pointers of pools: each is shared memory of its own, which outlives the allocation. */
#ifndef SIMGPU_CUDA_POOL_EXPORTS_H
#define SIMGPU_CUDA_POOL_EXPORTS_H

#include <cuda.h>
#include <stdint.h>

#include "cuda/allocation/allocation.h"

/* Exports an allocation of the pool and returns the id of its shared memory. */
CUresult pool_export_add(CUmemoryPool pool, const struct allocation *allocation, uint64_t *shared_id);
/* Holds the shared memory of an exported pointer for an imported pool. */
CUresult pool_export_import(CUmemoryPool pool, uint64_t shared_id);
/* Takes exports whose allocation is freed out of the reserve, at most `most` bytes, and returns how many. They stay on
 * the card, held by importers and by the pool's handle. */
uint64_t pool_exports_unreserve(CUmemoryPool pool, uint64_t most);
/* Drops the holds of the pool's handle. */
void pool_exports_drop(CUmemoryPool pool);
/* Frees the list. */
void pool_exports_free(CUmemoryPool pool);

#endif
