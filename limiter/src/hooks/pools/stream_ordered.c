/* Wrappers of stream-ordered allocation. The pool is charged, not the pointer, because a pool keeps freed memory until
 * a synchronisation. Such pointers are not recorded in books/pointers/pointers.h. */
#include "books/pools/current_pool_cache.h"
#include "books/pools/current_pools.h"
#include "books/pools/imports.h"
#include "books/pools/pool_guard.h"
#include "books/pools/pool_ids.h"
#include "books/pools/pools.h"
#include "books/pools/recent_allocations.h"
#include "charge/nvml/nvml_usage.h"
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

#define IS_CAPTURED(name)                                                                              \
    static bool is_captured_by_##name(CUstream stream) {                                               \
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;                                  \
        return REAL(name)(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE; \
    }
IS_CAPTURED(cuStreamIsCapturing)
IS_CAPTURED(cuStreamIsCapturing_ptsz)

/* Body of an allocating wrapper. `variant` is nothing or _ptsz, `begin` an expression that begins the growth; the
 * variadic arguments are the real function's, after pointer and bytes. */
#define ALLOCATE(name, variant, begin, pointer, bytes, stream, ...)                                \
    do {                                                                                           \
        if (!(pointer) || !container_is_limited()) return REAL(name)(pointer, bytes, __VA_ARGS__); \
        struct pool_growth growth = begin;                                                         \
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;                                                \
        if (!growth.is_refused) do                                                                 \
                result = REAL(name)(pointer, bytes, __VA_ARGS__);                                  \
            while (reservation_retry(&growth.reservation, result));                                \
        if (growth.is_refused || pool_growth_fits(&growth, result, *(pointer))) {                  \
            record_size(&growth, result, *(pointer), bytes);                                       \
        } else {                                                                                   \
            REAL(cuMemFreeAsync##variant)(*(pointer), stream);                                     \
            *(pointer) = 0;                                                                        \
            result = refuse(&growth);                                                              \
        }                                                                                          \
        pool_growth_end(&growth);                                                                  \
        return result;                                                                             \
    } while (0)

#define ALLOCATE_FROM_CURRENT(name, variant)                                                                        \
    ALLOCATE(name, variant,                                                                                         \
             pool_growth_begin_current(#name, bytes, is_captured_by_cuStreamIsCapturing##variant, stream), pointer, \
             bytes, stream, stream)

#define ALLOCATE_FROM(name, variant, pool)                                                                          \
    ALLOCATE(name, variant,                                                                                         \
             pool_growth_begin(#name, current_pools_find(pool), bytes, is_captured_by_cuStreamIsCapturing##variant, \
                               stream),                                                                             \
             pointer, bytes, stream, pool, stream)

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    ALLOCATE_FROM_CURRENT(cuMemAllocAsync, );
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    ALLOCATE_FROM_CURRENT(cuMemAllocAsync_ptsz, _ptsz);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    ALLOCATE_FROM(cuMemAllocFromPoolAsync, , pool);
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    ALLOCATE_FROM(cuMemAllocFromPoolAsync_ptsz, _ptsz, pool);
}

/* Body of a wrapper that returns a pool's handle. Inside the pool guard no pool is destroyed, so the handle cannot
 * become another pool's before it is recorded. */
#define LEARN(name, location, type, is_new, pool, ...)                                    \
    do {                                                                                  \
        if (!container_is_limited()) return REAL(name)(pool, __VA_ARGS__);                \
        pool_guard_enter();                                                               \
        CUresult result = REAL(name)(pool, __VA_ARGS__);                                  \
        if (result == CUDA_SUCCESS) current_pools_learn(*(pool), location, type, is_new); \
        pool_guard_leave();                                                               \
        return result;                                                                    \
    } while (0)

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    LEARN(cuMemPoolCreate, &properties->location, properties->allocType, true, pool, properties);
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    LEARN(cuMemGetDefaultMemPool, location, type, false, pool, location, type);
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    LEARN(cuMemGetMemPool, location, type, false, pool, location, type);
}

/* Body of a wrapper that changes a device's current pool. The cache of current pools is dropped before the call, so
 * that no thread uses the former pool once it has returned, and after it, because another thread may have cached the
 * former pool meanwhile. */
#define CHANGE_CURRENT(name, ...)                  \
    do {                                           \
        current_pool_cache_note_choice();          \
        CUresult result = REAL(name)(__VA_ARGS__); \
        current_pool_cache_drop();                 \
        return result;                             \
    } while (0)

EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    CHANGE_CURRENT(cuDeviceSetMemPool, device, pool);
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    CHANGE_CURRENT(cuMemSetMemPool, location, type, pool);
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
 * until the process ends; and of a pool that had live allocations, which only NVML can count. */
static void release_removed(struct pool removed, struct shared_pool shared, bool had_allocations) {
    if (imports_end_pool(shared.id)) return;
    if (had_allocations && !removed.is_managed && nvml_usage_is_trusted()) removed.charged = 0;
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
