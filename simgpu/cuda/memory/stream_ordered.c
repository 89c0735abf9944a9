/* Stream-ordered allocation, and creation and destruction of pools. */
#include "cuda/allocation/allocation.h"
#include "cuda/context/context.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/memory/allocation_free.h"
#include "cuda/pool/current_pool.h"
#include "cuda/pool/exports.h"
#include "cuda/pool/pool.h"
#include "hardware/export.h"

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

EXPORTED CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    ENTER();
    return allocate(dptr, bytesize, NULL, hStream);
}

EXPORTED CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
    ENTER();
    REQUIRE(pool != NULL && !pool->imported, CUDA_ERROR_INVALID_VALUE);
    return allocate(dptr, bytesize, pool, hStream);
}

EXPORTED CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
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

EXPORTED CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
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

EXPORTED CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    ENTER();
    REQUIRE(pool != NULL && pool != device_at(pool->device)->default_pool, CUDA_ERROR_INVALID_VALUE);
    Device *device = device_at(pool->device);
    if (device->current_pool == pool) {
        device->current_pool = device->default_pool;
    }
    pool->destroyed = true;
    if (pool->imports == 0) {
        pool_exports_drop(pool);
    }
    pool_free_if_unused(pool);
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    ENTER();
    CUresult forbidden = capture_forbids();
    REQUIRE(forbidden == CUDA_SUCCESS, forbidden);
    REQUIRE(pool != NULL, CUDA_ERROR_INVALID_VALUE);
    pool_trim(pool, minBytesToKeep);
    LEAVE(CUDA_SUCCESS);
}
