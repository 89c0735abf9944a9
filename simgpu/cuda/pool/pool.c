/* A pool takes memory from the card in blocks of POOL_BLOCK. At a synchronization it gives back the unused blocks above
 * its release threshold. Reserved blocks are charged to the card, whether or not allocations use them. */
#include "cuda/pool/pool.h"

#include <stdlib.h>
#include <time.h>

#include "cuda/device/device_memory.h"
#include "cuda/pool/exports.h"
#include "hardware/units.h"
#include "ledger/faults.h"

/* The least time that a pool needs to grow (measured on an H200, driver 580). */
enum { GROWTH_NS = 25000 };

static CUmemoryPool pools;

CUmemoryPool pool_make(CUdevice ordinal) {
    CUmemoryPool pool = calloc(1, sizeof *pool);
    if (pool) {
        *pool = (struct CUmemPoolHandle_st){.next = pools, .device = ordinal};
        pools = pool;
    }
    return pool;
}

static CUresult reserve(CUmemoryPool pool, uint64_t bytes) {
    CUresult result = pool->is_managed ? CUDA_SUCCESS : device_charge(pool->device, bytes - pool->reserved);
    nanosleep(&(struct timespec){.tv_nsec = GROWTH_NS}, NULL);
    pool->reserved = result == CUDA_SUCCESS ? bytes : pool->reserved;
    return result;
}

/* A test injects this result to make the free memory of pools fragmented: no allocation fits in it. */
static bool is_fragmented(void) { return fault_injected("pool_in_pieces") != 0; }

CUresult pool_charge(CUmemoryPool pool, uint64_t bytes) {
    if (pool->limit != 0 && pool->used + bytes > pool->limit) return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t needed = round_up((is_fragmented() ? pool->reserved : pool->used) + bytes, POOL_BLOCK);
    CUresult result = needed > pool->reserved ? reserve(pool, needed) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return result;
    pool->used += bytes;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    pool->reserved_high = pool->reserved > pool->reserved_high ? pool->reserved : pool->reserved_high;
    return CUDA_SUCCESS;
}

void pool_trim(CUmemoryPool pool, uint64_t keep) {
    uint64_t kept = keep < pool->reserved ? round_up(pool->used > keep ? pool->used : keep, POOL_BLOCK) : keep;
    if (kept >= pool->reserved) return;
    pool->reserved -= pool_exports_unreserve(pool, pool->reserved - kept);
    if (!pool->is_managed) device_release(pool->device, pool->reserved - kept);
    pool->reserved = kept;
}

void pool_free_if_unused(CUmemoryPool pool) {
    CUmemoryPool *link = &pools;
    if (!pool->is_destroyed || pool->used > 0 || pool->imports > 0) return;
    pool_trim(pool, 0);
    pool_exports_free(pool);
    if (pool->shared_id != 0) shared_memory_drop(pool->shared_id, pool->is_imported ? pool->attribution : ATTRIBUTED);
    while (*link != pool) link = &(*link)->next;
    *link = pool->next;
    free(pool);
}

void pool_release(CUmemoryPool pool, uint64_t bytes) {
    pool->used -= bytes;
    pool_free_if_unused(pool);
}

void pools_trim(CUdevice ordinal) {
    CUmemoryPool next;
    for (CUmemoryPool pool = pools; pool; pool = next) {
        next = pool->next;
        if (pool->device == ordinal) {
            pool_trim(pool, pool->threshold);
            pool_free_if_unused(pool);
        }
    }
}
