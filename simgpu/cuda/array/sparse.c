/* Sparse and deferred arrays, which have no memory of their own: what they need, and what a program maps to them. */
#include <string.h>

#include "cuda/array/array.h"
#include "cuda/array/mappings.h"
#include "cuda/array/mipmapped.h"
#include "cuda/array/texels.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"
#include "hardware/units.h"

#define ALIGNMENT (64 * KIB)
#define NO_MEMORY (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

static const void *array_of(const CUarrayMapInfo *info) {
    return info->resourceType == CU_RESOURCE_TYPE_ARRAY ? (const void *)info->resource.array
                                                        : (const void *)info->resource.mipmap;
}

/* 0 when there is no such array. */
static unsigned flags_of(const CUarrayMapInfo *info) {
    if (info->resourceType == CU_RESOURCE_TYPE_ARRAY)
        return array_exists(info->resource.array) ? info->resource.array->descriptor.Flags : 0;
    bool is_mipmapped = info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && mipmap_exists(info->resource.mipmap);
    return is_mipmapped ? info->resource.mipmap->descriptor.Flags : 0;
}

static struct array_part part_of(const CUarrayMapInfo *info) {
    struct array_part part = {.array = array_of(info)};
    if ((flags_of(info) & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) {
        part.type = info->subresourceType;
        memcpy(part.name, &info->subresource, sizeof part.name);
    }
    return part;
}

static CUresult apply(const CUarrayMapInfo *info) {
    bool has_one_device = info->deviceBitMask != 0 && (info->deviceBitMask & (info->deviceBitMask - 1)) == 0;
    if ((flags_of(info) & NO_MEMORY) == 0 || !has_one_device || info->flags != 0) return CUDA_ERROR_INVALID_VALUE;
    struct array_part part = part_of(info);
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP) return array_map(&part, info->memHandle.memHandle);
    array_unmap(&part);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *maps, unsigned count, CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    (void)stream;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!maps || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++) result = apply(&maps[i]);
    return result;
}

static CUresult answer(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t size) {
    if ((descriptor->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = round_up(size, SMALL_UNIT), .alignment = ALIGNMENT};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
                                             CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!requirements || !array_exists(array)) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    return answer(requirements, &array->descriptor, texels_size(&array->descriptor));
}

EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
                                                      CUmipmappedArray mipmap, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!requirements || !mipmap_exists(mipmap)) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    return answer(requirements, &mipmap->descriptor, mipmap_size(mipmap));
}
