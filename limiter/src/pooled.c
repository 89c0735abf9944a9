/* Stream-ordered allocation: the pool is charged, not the pointer, which is in no book of ours; freed, it stays the
 * pool's memory until a synchronisation. */
#include "attempt.h"
#include "growth.h"
#include "hooks.h"
#include "refusals.h"
#include "settle.h"

/* What no allocation is in goes back to the card now, the rest with the next synchronisation. */
static CUresult refuse(const struct growth *growth) {
    REAL(cuMemPoolTrimTo)(growth->pool->handle, 0);
    growth_look(growth->pool);
    refusals_add(growth->what, growth->pool->uuid, POOL_STEP);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

#define IS_CAPTURED(name)                                                                              \
    static bool is_captured_by_##name(CUstream stream) {                                               \
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;                                  \
        return REAL(name)(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE; \
    }
IS_CAPTURED(cuStreamIsCapturing)
IS_CAPTURED(cuStreamIsCapturing_ptsz)

/* The rest of an allocating function's body; `variant` is nothing or _ptsz, the arguments are the real function's. */
#define ALLOCATE(name, variant, pool, pointer, bytes, stream, ...)                                                    \
    do {                                                                                                              \
        if (!(pointer) || !charge_is_limited()) return REAL(name)(pointer, bytes, __VA_ARGS__);                       \
        struct growth growth = growth_begin(#name, pool, bytes, is_captured_by_cuStreamIsCapturing##variant, stream); \
        if (growth.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        CUresult result;                                                                                              \
        do result = REAL(name)(pointer, bytes, __VA_ARGS__);                                                          \
        while (claim_again(&growth.claim, result));                                                                   \
        if (growth_fits(&growth, result)) return result;                                                              \
        REAL(cuMemFreeAsync##variant)(*(pointer), stream);                                                            \
        *(pointer) = 0;                                                                                               \
        return refuse(&growth);                                                                                       \
    } while (0)

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    ALLOCATE(cuMemAllocAsync, , pools_current(), pointer, bytes, stream, stream);
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    ALLOCATE(cuMemAllocAsync_ptsz, _ptsz, pools_current(), pointer, bytes, stream, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    ALLOCATE(cuMemAllocFromPoolAsync, , pools_find(pool), pointer, bytes, stream, pool, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    ALLOCATE(cuMemAllocFromPoolAsync_ptsz, _ptsz, pools_find(pool), pointer, bytes, stream, pool, stream);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    CUresult result = REAL(cuMemPoolCreate)(pool, properties);
    if (result == CUDA_SUCCESS && charge_is_limited())
        pools_learn(*pool, &properties->location, properties->allocType, true);
    return result;
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    CUresult result = REAL(cuMemGetDefaultMemPool)(pool, location, type);
    if (result == CUDA_SUCCESS && charge_is_limited()) pools_learn(*pool, location, type, false);
    return result;
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    CUresult result = REAL(cuMemGetMemPool)(pool, location, type);
    if (result == CUDA_SUCCESS && charge_is_limited()) pools_learn(*pool, location, type, false);
    return result;
}

/* Before the call, so that nothing is allocated from the former one afterwards; and after it, for another thread may
 * have asked meanwhile. */
#define CHANGE_CURRENT(name, ...)                  \
    do {                                           \
        pools_current_changes();                   \
        CUresult result = REAL(name)(__VA_ARGS__); \
        pools_current_changes();                   \
        return result;                             \
    } while (0)

EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    CHANGE_CURRENT(cuDeviceSetMemPool, device, pool);
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    CHANGE_CURRENT(cuMemSetMemPool, location, type, pool);
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    CUresult result = REAL(cuMemPoolTrimTo)(pool, keep);
    if (result == CUDA_SUCCESS && charge_is_limited()) growth_look(pools_find(pool));
    return result;
}

/* What is still allocated from it lasts until it is freed; that only NVML can count. */
EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    if (!charge_is_limited()) return REAL(cuMemPoolDestroy)(pool);
    struct pool gone = {0};
    int span = charge_enter();
    pools_suspend();
    CUresult result = REAL(cuMemPoolDestroy)(pool);
    if (result == CUDA_SUCCESS) gone = pools_drop(pool);
    pools_resume();
    growth_end(&gone);
    charge_leave(span);
    if (gone.is_counted) settle_own(gone.uuid, 0);
    return result;
}
