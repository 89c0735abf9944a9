/* Arrays without memory of their own: what they would need, and the physical memory mapped to them. */
#define _GNU_SOURCE
#include "array.h"
#include "vmm_physical.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT (64 * SIM_KIB)
#define WITHOUT   (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

/* A part of an array that has memory, known by the words the program named it with. */
typedef struct Part {
    struct Part *next;
    const void *array; /* of either kind */
    CUarraySparseSubresourceType type;
    unsigned char place[sizeof(((CUarrayMapInfo *)0)->subresource)];
    Physical *physical;
} Part;

static Part *parts;

static void drop(Part **link) {
    Part *gone = *link;
    *link = gone->next;
    physical_let_go(gone->physical);
    free(gone);
}

void array_unmap(const void *array) {
    for (Part **link = &parts; *link != NULL;) {
        if ((*link)->array == array) {
            drop(link);
        } else {
            link = &(*link)->next;
        }
    }
}

static const void *array_of(const CUarrayMapInfo *info) {
    return info->resourceType == CU_RESOURCE_TYPE_ARRAY ? (const void *)info->resource.array
                                                        : (const void *)info->resource.mipmap;
}

/* 0 when there is no such array. */
static unsigned flags_of(const CUarrayMapInfo *info) {
    if (info->resourceType == CU_RESOURCE_TYPE_ARRAY) {
        return array_exists(info->resource.array) ? info->resource.array->descriptor.Flags : 0;
    }
    bool mipmapped = info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && mipmap_exists(info->resource.mipmap);
    return mipmapped ? info->resource.mipmap->descriptor.Flags : 0;
}

static Part named(const CUarrayMapInfo *info) {
    Part part = {.array = array_of(info)};
    if ((flags_of(info) & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) {
        part.type = info->subresourceType;
        memcpy(part.place, &info->subresource, sizeof part.place);
    }
    return part;
}

static void unmap(const Part *part) {
    for (Part **link = &parts; *link != NULL; link = &(*link)->next) {
        bool same = (*link)->array == part->array && (*link)->type == part->type;
        if (same && memcmp((*link)->place, part->place, sizeof part->place) == 0) {
            drop(link);
            return;
        }
    }
}

static CUresult map(const Part *part, CUmemGenericAllocationHandle handle) {
    Physical *physical = physical_of(handle);
    if (physical == NULL || (physical->properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Part *made = malloc(sizeof *made);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical_hold(physical);
    unmap(part);
    *made = *part;
    made->physical = physical;
    made->next = parts;
    parts = made;
    return CUDA_SUCCESS;
}

static CUresult apply(const CUarrayMapInfo *info) {
    bool one_device = info->deviceBitMask != 0 && (info->deviceBitMask & (info->deviceBitMask - 1)) == 0;
    if ((flags_of(info) & WITHOUT) == 0 || !one_device || info->flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Part part = named(info);
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP) {
        return map(&part, info->memHandle.memHandle);
    }
    unmap(&part);
    return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream) {
    CUresult result = CUDA_SUCCESS;
    (void)hStream;
    ENTER();
    REQUIRE(mapInfoList != NULL && count > 0, CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++) {
        result = apply(&mapInfoList[i]);
    }
    LEAVE(result);
}

static CUresult answer(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t size) {
    REQUIRE((descriptor->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0, CUDA_ERROR_INVALID_VALUE);
    *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = round_up(size, SMALL_UNIT), .alignment = ALIGNMENT};
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
                                                 CUdevice device) {
    ENTER();
    REQUIRE(memoryRequirements != NULL && array_exists(array), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(device) != NULL, CUDA_ERROR_INVALID_DEVICE);
    return answer(memoryRequirements, &array->descriptor, texels_size(&array->descriptor));
}

SIM_EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                                          CUmipmappedArray mipmap, CUdevice device) {
    ENTER();
    REQUIRE(memoryRequirements != NULL && mipmap_exists(mipmap), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(device) != NULL, CUDA_ERROR_INVALID_DEVICE);
    return answer(memoryRequirements, &mipmap->descriptor, mipmap_size(mipmap));
}
