/* Attributes of pools, and the devices that may access their memory. */
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/pool/pool.h"
#include "hardware/export.h"

/* The field of a 64-bit attribute; NULL for the reuse switches, which are ints and have no effect here. */
static uint64_t *field_of(CUmemoryPool pool, CUmemPool_attribute attr) {
    switch ((int)attr) {
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            return &pool->threshold;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
            return &pool->reserved;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            return &pool->reserved_high;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            return &pool->used;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            return &pool->used_high;
        default:
            return NULL;
    }
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    if (!pool || !value || pool->is_imported) return CUDA_ERROR_INVALID_VALUE;
    const uint64_t *field = field_of(pool, attribute);
    if (field)
        *(cuuint64_t *)value = *field;
    else
        *(int *)value = 1;
    return CUDA_SUCCESS;
}

/* A peak can be set to 0 only, which resets it to the current value. */
static CUresult set(CUmemoryPool pool, CUmemPool_attribute attr, uint64_t *field, uint64_t value) {
    switch ((int)attr) {
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            *field = value;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            *field = attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used : pool->reserved;
            return value == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pool || !value) return CUDA_ERROR_INVALID_VALUE;
    uint64_t *field = field_of(pool, attribute);
    return !field ? CUDA_SUCCESS : set(pool, attribute, field, *(const cuuint64_t *)value);
}

/* The memory's own device always has access. */
EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!pool || (!map && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
        if (!device_at(map[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
        bool is_revoked = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE && map[i].location.id == pool->device;
        if (is_revoked) return CUDA_ERROR_INVALID_VALUE;
        pool->access[map[i].location.id] = map[i].flags;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!flags || !pool || !location) return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(location->id)) return CUDA_ERROR_INVALID_DEVICE;
    *flags = location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : pool->access[location->id];
    return CUDA_SUCCESS;
}
