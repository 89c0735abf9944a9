/* Arrays of every kind. An element is four floats. A size that is too large for one array is made of several. */
#include <stdlib.h>

#include "classes.h"

enum { ELEMENT = 16, LINE = 131072, ROW = 32768, SIDE = 256, LEVELS = 3, GRANULE = 2 << 20 };

#define LINE_BYTES  ((size_t)LINE * ELEMENT)
#define ROW_BYTES   ((size_t)ROW * ELEMENT)
#define SLICE_BYTES ((size_t)SIDE * SIDE * ELEMENT)

static size_t at_least_one(size_t count) { return count ? count : 1; }

static CUDA_ARRAY3D_DESCRIPTOR describe(size_t width, size_t height, size_t depth) {
    return (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = width, .Height = height, .Depth = depth, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
}

static CUDA_ARRAY3D_DESCRIPTOR describe_rows(size_t bytes) { return describe(ROW, at_least_one(bytes / ROW_BYTES), 0); }

static void give_arrays(struct holding *held) {
    CUarray *arrays = held->object;
    for (size_t i = 0; i < held->count; i++) DO(cuArrayDestroy, arrays[i]);
    free(arrays);
}

static bool take_lines(struct holding *held) {
    CUDA_ARRAY_DESCRIPTOR line = {.Width = LINE, .Height = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    size_t wanted = at_least_one(held->bytes / LINE_BYTES);
    CUarray *arrays = calloc(wanted, sizeof *arrays);
    held->object = arrays;
    for (held->count = 0; held->count < wanted; held->count++) {
        if (DO(cuArrayCreate_v2, &arrays[held->count], &line)) continue;
        give_arrays(held);
        return false;
    }
    return true;
}

static bool take_array(struct holding *held, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    CUarray array;
    if (!DO(cuArray3DCreate_v2, &array, shape)) return false;
    held->object = array;
    return true;
}

static void give_array(struct holding *held) { DO(cuArrayDestroy, held->object); }

static bool take_plane(struct holding *held) {
    CUDA_ARRAY_DESCRIPTOR plane = {
        .Width = ROW, .Height = at_least_one(held->bytes / ROW_BYTES), .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    return DO(cuArrayCreate_v2, (CUarray *)&held->object, &plane);
}

static bool take_box(struct holding *held) {
    CUDA_ARRAY3D_DESCRIPTOR box = describe(SIDE, SIDE, at_least_one(held->bytes / SLICE_BYTES));
    return take_array(held, &box);
}

/* The levels below the first add about a third. */
static bool take_mipmap(struct holding *held) {
    CUDA_ARRAY3D_DESCRIPTOR shape = describe_rows(held->bytes / 4 * 3);
    return DO(cuMipmappedArrayCreate, (CUmipmappedArray *)&held->object, &shape, LEVELS);
}

static void give_mipmap(struct holding *held) { DO(cuMipmappedArrayDestroy, held->object); }

static bool map_array(struct holding *held) {
    CUarrayMapInfo place = {
        .resourceType = CU_RESOURCE_TYPE_ARRAY,
        .resource = {.array = held->object},
        .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
        .memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
        .memHandle = {.memHandle = held->handle},
        .deviceBitMask = 1,
    };
    return DO(cuMemMapArrayAsync, &place, 1, NULL) && DO(cuCtxSynchronize);
}

static bool create_tiles(struct holding *held, size_t size) {
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        .allocFlags = {.usage = CU_MEM_CREATE_USAGE_TILE_POOL},
    };
    return DO(cuMemCreate, &held->handle, (size + GRANULE - 1) / GRANULE * GRANULE, &properties, 0);
}

static bool back(struct holding *held) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needed = {0};
    if (!DO(cuArrayGetMemoryRequirements, &needed, held->object, 0)) return false;
    if (!create_tiles(held, needed.size)) return false;
    if (map_array(held)) return true;
    DO(cuMemRelease, held->handle);
    return false;
}

/* An array whose memory is a mapped handle. */
static bool take_deferred(struct holding *held) {
    CUDA_ARRAY3D_DESCRIPTOR shape = describe_rows(held->bytes);
    shape.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
    if (!take_array(held, &shape)) return false;
    if (back(held)) return true;
    give_array(held);
    return false;
}

static void give_deferred(struct holding *held) {
    give_array(held);
    DO(cuMemRelease, held->handle);
}

const struct class array_classes[] = {
    {"array 1D", take_lines, give_arrays},
    {"array 2D", take_plane, give_array},
    {"array 3D", take_box, give_array},
    {"mipmapped", take_mipmap, give_mipmap},
    {"array deferred", take_deferred, give_deferred},
    {0},
};
