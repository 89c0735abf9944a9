#include "cuda/device/resources.h"

#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"
#include "hardware/units.h"

#define MULTIPROCESSORS 132
#define PARTITION       8 /* each part is a multiple of it, from compute capability 9.0 */

struct CUdevResourceDesc_st {
    CUdevResource resource;
};

/* One for each number of multiprocessors. CUDA has no function that frees a descriptor. */
static struct CUdevResourceDesc_st descriptions[MULTIPROCESSORS + 1];

const CUdevResource *described_resource(CUdevResourceDesc desc) { return &desc->resource; }

static CUdevResource resource_of(unsigned count) {
    CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_SM};
    resource.sm.smCount = count;
    resource.sm.minSmPartitionSize = PARTITION;
    resource.sm.smCoscheduledAlignment = PARTITION;
    return resource;
}

CUdevResource device_resource_whole(void) { return resource_of(MULTIPROCESSORS); }

EXPORT CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!resource || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *resource = device_resource_whole();
    return CUDA_SUCCESS;
}

/* When `result` is NULL, sets `count` to the number of parts that are possible. */
EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned *count, const CUdevResource *input,
                                            CUdevResource *remaining, unsigned flags, unsigned least) {
    (void)flags;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!count || !input) return CUDA_ERROR_INVALID_VALUE;
    if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    unsigned size = (unsigned)round_up(least > 0 ? least : 1, PARTITION);
    unsigned possible = input->sm.smCount / size;
    if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    unsigned given = !result || possible < *count ? possible : *count;
    for (unsigned i = 0; result && i < given; i++) result[i] = resource_of(size);
    if (result && remaining) *remaining = resource_of(input->sm.smCount - given * size);
    *count = given;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources, unsigned count) {
    unsigned multiprocessors = 0;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!description || !resources || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        multiprocessors += resources[i].sm.smCount;
    }
    if (multiprocessors > MULTIPROCESSORS) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *description = &descriptions[multiprocessors];
    (*description)->resource = resource_of(multiprocessors);
    return CUDA_SUCCESS;
}
