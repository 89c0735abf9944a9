#include "cuda/pool/current_pool.h"

#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/pool/pool.h"
#include "hardware/export.h"

static CUmemoryPool default_pool(CUdevice ordinal) {
    struct device *device = device_at(ordinal);
    if (!device->default_pool) {
        device->default_pool = pool_make(ordinal);
        device->current_pool = device->default_pool;
    }
    return device->default_pool;
}

CUmemoryPool pool_current(CUdevice ordinal) {
    default_pool(ordinal);
    return device_at(ordinal)->current_pool;
}

static CUresult get_pool(CUmemoryPool *pool, CUdevice dev, CUmemoryPool (*find)(CUdevice)) {
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(dev)) return CUDA_ERROR_INVALID_DEVICE;
    *pool = find(dev);
    return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return get_pool(pool, device, default_pool);
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return get_pool(pool, device, pool_current);
}

static CUresult set_pool(CUdevice dev, CUmemoryPool pool) {
    if (!device_at(dev)) return CUDA_ERROR_INVALID_DEVICE;
    if (!pool || pool->device != dev || pool->is_imported) return CUDA_ERROR_INVALID_VALUE;
    default_pool(dev);
    device_at(dev)->current_pool = pool;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return set_pool(device, pool);
}

/* The forms of CUDA 13 name a location. Only pinned memory of a device is simulated. */
static bool is_simulated(const CUmemLocation *location, CUmemAllocationType type) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    if (!is_simulated(location, type)) return CUDA_ERROR_NOT_SUPPORTED;
    return get_pool(pool, location->id, default_pool);
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    if (!is_simulated(location, type)) return CUDA_ERROR_NOT_SUPPORTED;
    return get_pool(pool, location->id, pool_current);
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    if (!is_simulated(location, type)) return CUDA_ERROR_NOT_SUPPORTED;
    return set_pool(location->id, pool);
}
