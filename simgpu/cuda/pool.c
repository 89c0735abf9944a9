/* Stream-ordered allocation. A pool takes memory from the card in blocks of 32 MiB and gives it back, above its release
 * threshold, at the next synchronisation: what it holds is what it reserved, not what is used of it. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <time.h>

/* What it takes a GPU's pool to grow, at the least (measured on an H200, driver 580). */
enum { GROWTH_NS = 25000 };

static CUmemoryPool pools;

CUmemoryPool pool_make(CUdevice ordinal) {
    CUmemoryPool pool = calloc(1, sizeof *pool);
    if (pool != NULL) {
        *pool = (struct CUmemPoolHandle_st){.next = pools, .device = ordinal};
        pools = pool;
    }
    return pool;
}

static CUresult reserve(CUmemoryPool pool, uint64_t bytes) {
    CUresult result = device_charge(pool->device, bytes - pool->reserved);
    nanosleep(&(struct timespec){.tv_nsec = GROWTH_NS}, NULL);
    pool->reserved = result == CUDA_SUCCESS ? bytes : pool->reserved;
    return result;
}

/* Where a test says so, what is free of a pool is in pieces that are too small. */
static bool is_in_pieces(void) { return sim_fault("pool_in_pieces") != 0; }

static CUresult pool_charge(CUmemoryPool pool, uint64_t bytes) {
    if (pool->limit != 0 && pool->used + bytes > pool->limit) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t needed = round_up((is_in_pieces() ? pool->reserved : pool->used) + bytes, POOL_BLOCK);
    CUresult result = needed > pool->reserved ? reserve(pool, needed) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        return result;
    }
    pool->used += bytes;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    pool->reserved_high = pool->reserved > pool->reserved_high ? pool->reserved : pool->reserved_high;
    return CUDA_SUCCESS;
}

static void trim(CUmemoryPool pool, uint64_t keep) {
    uint64_t kept = keep < pool->reserved ? round_up(pool->used > keep ? pool->used : keep, POOL_BLOCK) : keep;
    if (kept >= pool->reserved) {
        return;
    }
    pool->reserved -= pieces_hide(pool, pool->reserved - kept);
    device_release(pool->device, pool->reserved - kept);
    pool->reserved = kept;
}

void pool_drop_if_done(CUmemoryPool pool) {
    CUmemoryPool *link = &pools;
    if (!pool->destroyed || pool->used > 0 || pool->imports > 0) {
        return;
    }
    trim(pool, 0);
    pieces_free(pool);
    if (pool->share != 0) {
        ledger_share_drop(pool->share, pool->imported ? pool->sight : SEEN);
    }
    while (*link != pool) {
        link = &(*link)->next;
    }
    *link = pool->next;
    free(pool);
}

void pool_release(CUmemoryPool pool, uint64_t bytes) {
    pool->used -= bytes;
    pool_drop_if_done(pool);
}

void pools_trim(CUdevice ordinal) {
    CUmemoryPool next;
    for (CUmemoryPool pool = pools; pool != NULL; pool = next) {
        next = pool->next;
        if (pool->device == ordinal) {
            trim(pool, pool->threshold);
            pool_drop_if_done(pool);
        }
    }
}

static CUresult allocate(CUdeviceptr *dptr, size_t size, CUmemoryPool pool, CUstream stream) {
    CUcontext context;
    CUresult result = context_current(&context);
    REQUIRE(result == CUDA_SUCCESS, result);
    REQUIRE(dptr != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(size < UINT64_C(1) << 50, CUDA_ERROR_OUT_OF_MEMORY);
    if (size == 0) {
        *dptr = 0;
        LEAVE(CUDA_SUCCESS);
    }
    if (capture_takes_allocation(stream, pool == NULL ? context->device : pool->device, size, dptr, &result)) {
        LEAVE(result);
    }
    pool = pool == NULL ? pool_current(context->device) : pool;
    result = pool_charge(pool, size);
    REQUIRE(result == CUDA_SUCCESS, result);
    Allocation made = {.size = size, .charged = size, .kind = KIND_POOL, .context = context, .pool = pool};
    result = allocation_add(made, dptr);
    if (result != CUDA_SUCCESS) {
        pool_release(pool, size);
    }
    LEAVE(result);
}

SIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    ENTER();
    return allocate(dptr, bytesize, NULL, hStream);
}

SIM_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
    ENTER();
    REQUIRE(pool != NULL && !pool->imported, CUDA_ERROR_INVALID_VALUE);
    return allocate(dptr, bytesize, pool, hStream);
}

SIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    ENTER();
    CUresult result;
    Allocation *found = allocation_at(dptr);
    if (dptr == 0) {
        LEAVE(CUDA_SUCCESS);
    }
    if (capture_takes_free(hStream, dptr, &result)) {
        LEAVE(result);
    }
    REQUIRE(found != NULL && allocation_is_freeable(found), CUDA_ERROR_INVALID_VALUE);
    LEAVE(allocation_free(found));
}

SIM_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    ENTER();
    REQUIRE(pool != NULL && poolProps != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE(device_at(poolProps->location.id) != NULL, CUDA_ERROR_INVALID_DEVICE);
    bool by_descriptor = poolProps->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    REQUIRE(by_descriptor || poolProps->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
    *pool = pool_make(poolProps->location.id);
    REQUIRE(*pool != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    (*pool)->exportable = by_descriptor;
    (*pool)->limit = poolProps->maxSize;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    ENTER();
    REQUIRE(pool != NULL && pool != device_at(pool->device)->default_pool, CUDA_ERROR_INVALID_VALUE);
    Device *device = device_at(pool->device);
    if (device->current_pool == pool) {
        device->current_pool = device->default_pool;
    }
    pool->destroyed = true;
    if (pool->imports == 0) {
        pieces_let_go(pool);
    }
    pool_drop_if_done(pool);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    ENTER();
    CUresult forbidden = capture_forbids();
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    REQUIRE(pool != NULL, CUDA_ERROR_INVALID_VALUE);
    trim(pool, minBytesToKeep);
    LEAVE(CUDA_SUCCESS);
}
