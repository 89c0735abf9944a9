#include "cuda/pool/current_pool.h"

#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/pool/pool.h"
#include "hardware/export.h"

static CUmemoryPool default_pool(CUdevice ordinal) {
    Device *device = device_at(ordinal);
    if (device->default_pool == NULL) {
        device->default_pool = pool_make(ordinal);
        device->current_pool = device->default_pool;
    }
    return device->default_pool;
}

CUmemoryPool pool_current(CUdevice ordinal) {
    (void)default_pool(ordinal);
    return device_at(ordinal)->current_pool;
}

static CUresult get_pool(CUmemoryPool *pool, CUdevice dev, CUmemoryPool (*find)(CUdevice)) {
    REQUIRE(pool != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    *pool = find(dev);
    LEAVE(*pool != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORTED CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
    ENTER();
    return get_pool(pool_out, dev, default_pool);
}

EXPORTED CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    ENTER();
    return get_pool(pool, dev, pool_current);
}

static CUresult set_pool(CUdevice dev, CUmemoryPool pool) {
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(pool != NULL && pool->device == dev && !pool->imported, CUDA_ERROR_INVALID_VALUE);
    (void)default_pool(dev);
    device_at(dev)->current_pool = pool;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
    ENTER();
    return set_pool(dev, pool);
}

/* The forms of CUDA 13 name a location. Only pinned memory of a device is simulated. */
static bool is_simulated(const CUmemLocation *location, CUmemAllocationType type) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

EXPORTED CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type) {
    ENTER();
    REQUIRE(location != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(is_simulated(location, type), CUDA_ERROR_NOT_SUPPORTED);
    return get_pool(pool_out, location->id, default_pool);
}

EXPORTED CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    ENTER();
    REQUIRE(location != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(is_simulated(location, type), CUDA_ERROR_NOT_SUPPORTED);
    return get_pool(pool, location->id, pool_current);
}

EXPORTED CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    ENTER();
    REQUIRE(location != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(is_simulated(location, type), CUDA_ERROR_NOT_SUPPORTED);
    return set_pool(location->id, pool);
}
