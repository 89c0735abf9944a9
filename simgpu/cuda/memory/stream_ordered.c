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
    if (result != CUDA_SUCCESS) return result;
    if (!dptr) return CUDA_ERROR_INVALID_VALUE;
    if (size >= UINT64_C(1) << 50) return CUDA_ERROR_OUT_OF_MEMORY;
    if (size == 0) {
        *dptr = 0;
        return CUDA_SUCCESS;
    }
    if (capture_takes_allocation(stream, !pool ? context->device : pool->device, size, dptr, &result)) return result;
    pool = !pool ? pool_current(context->device) : pool;
    result = pool_charge(pool, size);
    if (result != CUDA_SUCCESS) return result;
    struct allocation made = {.size = size, .charged = size, .kind = KIND_POOL, .context = context, .pool = pool};
    result = allocation_add(made, dptr);
    if (result != CUDA_SUCCESS) pool_release(pool, size);
    return result;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return allocate(address, size, NULL, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pool || pool->is_imported) return CUDA_ERROR_INVALID_VALUE;
    return allocate(address, size, pool, stream);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult result;
    struct allocation *found = allocation_at(address);
    if (address == 0) return CUDA_SUCCESS;
    if (capture_takes_free(stream, address, &result)) return result;
    if (!found || !allocation_is_freeable(found)) return CUDA_ERROR_INVALID_VALUE;
    return allocation_free(found);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wanted) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pool || !wanted) return CUDA_ERROR_INVALID_VALUE;
    if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!device_at(wanted->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    bool by_descriptor = wanted->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (!by_descriptor && wanted->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    bool is_managed = wanted->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if (is_managed && by_descriptor) return CUDA_ERROR_NOT_SUPPORTED;
    *pool = pool_make(wanted->location.id);
    if (!*pool) return CUDA_ERROR_OUT_OF_MEMORY;
    (*pool)->is_managed = is_managed;
    (*pool)->is_exportable = by_descriptor;
    (*pool)->limit = wanted->maxSize;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pool || pool == device_at(pool->device)->default_pool) return CUDA_ERROR_INVALID_VALUE;
    struct device *device = device_at(pool->device);
    if (device->current_pool == pool) device->current_pool = device->default_pool;
    pool->is_destroyed = true;
    if (pool->imports == 0) pool_exports_drop(pool);
    pool_free_if_unused(pool);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    pool_trim(pool, minBytesToKeep);
    return CUDA_SUCCESS;
}
