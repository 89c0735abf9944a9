/* Wrappers of stream-ordered allocation. The pool is charged, not the pointer, because a pool keeps freed memory until
 * a synchronisation. Such pointers are not recorded in books/pointers/pointers.h. */
#include "books/pools/current_pool_cache.h"
#include "books/pools/current_pools.h"
#include "books/pools/imports.h"
#include "books/pools/pool_guard.h"
#include "books/pools/pool_ids.h"
#include "books/pools/pools.h"
#include "books/pools/recent_allocations.h"
#include "charge/reconcile/reconcile.h"
#include "charge/reserve/attempt.h"
#include "charge/reserve/charge.h"
#include "charge/reserve/refusals.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/pools/pool_charge.h"
#include "hooks/pools/pool_end.h"
#include "hooks/pools/pool_growth.h"

/* The pool's idle memory goes back to the card now. What the stream has not freed yet goes with the next
 * synchronisation. */
static CUresult refuse(const struct pool_growth *growth) {
    REAL(cuMemPoolTrimTo)(growth->pool->handle, 0);
    pool_charge_check(growth->pool);
    refusals_report(growth->function_name, growth->pool->uuid, POOL_STEP);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void record_size(const struct pool_growth *growth, CUresult result, CUdeviceptr pointer, size_t bytes) {
    if (result == CUDA_SUCCESS && growth->pool) recent_allocations_add(pointer, pools_index(growth->pool), bytes);
}

typedef CUresult (*capture_query)(CUstream, CUstreamCaptureStatus *);
typedef CUresult (*free_function)(CUdeviceptr, CUstream);

static bool is_captured_by(capture_query query, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return query(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool is_captured(CUstream stream) { return is_captured_by(REAL(cuStreamIsCapturing), stream); }

static bool is_captured_ptsz(CUstream stream) { return is_captured_by(REAL(cuStreamIsCapturing_ptsz), stream); }

static CUresult free_async(CUdeviceptr pointer, CUstream stream) { return REAL(cuMemFreeAsync)(pointer, stream); }

static CUresult free_async_ptsz(CUdeviceptr pointer, CUstream stream) {
    return REAL(cuMemFreeAsync_ptsz)(pointer, stream);
}

static CUresult undo(const struct pool_growth *growth, free_function undo_call, CUdeviceptr *pointer, CUstream stream) {
    undo_call(*pointer, stream);
    *pointer = 0;
    return refuse(growth);
}

/* After the driver's call, which was not made if the growth is refused. `undo_call` is the driver's free for the kind
 * of stream. Returns the result for the program. */
static inline CUresult end(struct pool_growth *growth, CUresult result, free_function undo_call, CUdeviceptr *pointer,
                           size_t bytes, CUstream stream) {
    if (growth->is_refused || pool_growth_fits(growth, result, *pointer))
        record_size(growth, result, *pointer, bytes);
    else
        result = undo(growth, undo_call, pointer, stream);
    pool_growth_end(growth);
    return result;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    if (!pointer || !container_is_limited()) return REAL(cuMemAllocAsync)(pointer, bytes, stream);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct pool_growth growth = pool_growth_begin_current("cuMemAllocAsync", bytes, is_captured, stream);
    for (int calls = 0; pool_growth_needs_call(&growth, calls, result); calls++)
        result = REAL(cuMemAllocAsync)(pointer, bytes, stream);
    return end(&growth, result, free_async, pointer, bytes, stream);
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    if (!pointer || !container_is_limited()) return REAL(cuMemAllocAsync_ptsz)(pointer, bytes, stream);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct pool_growth growth = pool_growth_begin_current("cuMemAllocAsync_ptsz", bytes, is_captured_ptsz, stream);
    for (int calls = 0; pool_growth_needs_call(&growth, calls, result); calls++)
        result = REAL(cuMemAllocAsync_ptsz)(pointer, bytes, stream);
    return end(&growth, result, free_async_ptsz, pointer, bytes, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    if (!pointer || !container_is_limited()) return REAL(cuMemAllocFromPoolAsync)(pointer, bytes, pool, stream);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct pool *from = current_pools_find(pool);
    struct pool_growth growth = pool_growth_begin("cuMemAllocFromPoolAsync", from, bytes, is_captured, stream);
    for (int calls = 0; pool_growth_needs_call(&growth, calls, result); calls++)
        result = REAL(cuMemAllocFromPoolAsync)(pointer, bytes, pool, stream);
    return end(&growth, result, free_async, pointer, bytes, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    if (!pointer || !container_is_limited()) return REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, bytes, pool, stream);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct pool *from = current_pools_find(pool);
    struct pool_growth growth =
        pool_growth_begin("cuMemAllocFromPoolAsync_ptsz", from, bytes, is_captured_ptsz, stream);
    for (int calls = 0; pool_growth_needs_call(&growth, calls, result); calls++)
        result = REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, bytes, pool, stream);
    return end(&growth, result, free_async_ptsz, pointer, bytes, stream);
}

static bool is_supported(CUmemAllocationType type) {
    return type != CU_MEM_ALLOCATION_TYPE_MANAGED || container_has_managed_memory();
}

/* The wrappers that return a pool's handle record it inside the pool guard: no pool is destroyed there, so the handle
 * cannot become another pool's before it is recorded. */
EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    if (!container_is_limited() || !properties) return REAL(cuMemPoolCreate)(pool, properties);
    if (!is_supported(properties->allocType)) return CUDA_ERROR_NOT_SUPPORTED;
    HOLD_POOL_GUARD();
    CUresult result = REAL(cuMemPoolCreate)(pool, properties);
    if (result == CUDA_SUCCESS) current_pools_learn(*pool, &properties->location, properties->allocType, true);
    return result;
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    if (!container_is_limited()) return REAL(cuMemGetDefaultMemPool)(pool, location, type);
    if (!is_supported(type)) return CUDA_ERROR_NOT_SUPPORTED;
    HOLD_POOL_GUARD();
    CUresult result = REAL(cuMemGetDefaultMemPool)(pool, location, type);
    if (result == CUDA_SUCCESS) current_pools_learn(*pool, location, type, false);
    return result;
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    if (!container_is_limited()) return REAL(cuMemGetMemPool)(pool, location, type);
    if (!is_supported(type)) return CUDA_ERROR_NOT_SUPPORTED;
    HOLD_POOL_GUARD();
    CUresult result = REAL(cuMemGetMemPool)(pool, location, type);
    if (result == CUDA_SUCCESS) current_pools_learn(*pool, location, type, false);
    return result;
}

/* The wrappers that change a device's current pool drop the cache of current pools before the call, so that no thread
 * uses the former pool once it has returned, and after it, because another thread may have cached the former pool
 * meanwhile. */
EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    current_pool_cache_note_choice();
    CUresult result = REAL(cuDeviceSetMemPool)(device, pool);
    current_pool_cache_drop();
    return result;
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    current_pool_cache_note_choice();
    CUresult result = REAL(cuMemSetMemPool)(location, type, pool);
    current_pool_cache_drop();
    return result;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    CUresult result = REAL(cuMemPoolSetAttribute)(pool, attribute, value);
    if (result == CUDA_SUCCESS && attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pools_set_threshold(pool, *(cuuint64_t *)value);
    return result;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    CUresult result = REAL(cuMemPoolTrimTo)(pool, keep);
    if (result == CUDA_SUCCESS && container_is_limited()) pool_charge_check(current_pools_find(pool));
    return result;
}

static bool has_allocations(CUmemoryPool handle) {
    const struct pool *pool = pools_find(handle);
    return pool && pools_used(pool) != 0;
}

/* Two charges outlast the pool: of an imported pool with pointers that are not freed, whose memory the driver keeps
 * until the process ends; and of a pool that had live allocations, which only NVML can count, now or when it answers
 * again. */
static void release_removed(struct pool removed, struct shared_pool shared, bool had_allocations) {
    if (imports_end_pool(shared.id)) return;
    if (had_allocations && !removed.is_managed) removed.charged = 0;
    pool_end(&removed, shared);
}

static CUresult destroy(CUmemoryPool handle, struct pool *removed) {
    pool_guard_begin_destroy();
    pools_suspend();
    bool had_allocations = has_allocations(handle);
    struct shared_pool shared = pool_ids_take((uint64_t)handle);
    CUresult result = REAL(cuMemPoolDestroy)(handle);
    if (result == CUDA_SUCCESS) *removed = pools_remove(handle);
    pools_resume();
    pool_guard_end_destroy();
    if (result == CUDA_SUCCESS)
        release_removed(*removed, shared, had_allocations);
    else
        pool_ids_put((uint64_t)handle, shared);
    return result;
}

/* Allocations outlast their pool until they are freed. Only NVML can count them, so the pool's charge is left to
 * reconciling. */
EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    if (!container_is_limited()) return REAL(cuMemPoolDestroy)(pool);
    struct pool removed = {0};
    int call_slot = charge_begin_call();
    CUresult result = destroy(pool, &removed);
    charge_end_call(call_slot);
    if (removed.is_counted) reconcile_own(removed.uuid, 0);
    return result;
}
