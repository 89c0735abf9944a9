/* Arrays: the driver lays their texels out as it likes, so it is asked beforehand. It answers only about an array whose
 * memory is to be mapped later, so a twin is made with that flag, which takes no memory and 5 us. Arrays to be mapped
 * later, and sparse ones, take none themselves: theirs is made by cuMemCreate, and charged there. */
#include "books/array_records.h"
#include "charge/attempt.h"
#include "charge/charge.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/array_charge.h"
#include "hooks/memory/virtual_memory.h"

/* What is to be made: `levels` 0 is an array, else one with so many mipmaps. */
struct wish {
    const char *what;
    CUDA_ARRAY3D_DESCRIPTOR of;
    unsigned levels;
};

static bool takes_memory(const struct wish *wish) {
    return (wish->of.Flags & (CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SPARSE)) == 0;
}

static uint64_t size_of_array(const CUDA_ARRAY3D_DESCRIPTOR *twin, CUdevice device) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUarray array;
    if (REAL(cuArray3DCreate_v2)(&array, twin) != CUDA_SUCCESS) return 0;
    REAL(cuArrayGetMemoryRequirements)(&needs, array, device);
    REAL(cuArrayDestroy)(array);
    return needs.size;
}

static uint64_t size_of_mipmaps(const CUDA_ARRAY3D_DESCRIPTOR *twin, unsigned levels, CUdevice device) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUmipmappedArray mipmaps;
    if (REAL(cuMipmappedArrayCreate)(&mipmaps, twin, levels) != CUDA_SUCCESS) return 0;
    REAL(cuMipmappedArrayGetMemoryRequirements)(&needs, mipmaps, device);
    REAL(cuMipmappedArrayDestroy)(mipmaps);
    return needs.size;
}

/* 0 where the driver refuses the twin: so it will the array (of every kind on an H200, driver 580). */
static uint64_t size_of(const struct wish *wish, CUdevice device) {
    CUDA_ARRAY3D_DESCRIPTOR twin = wish->of;
    twin.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
    return wish->levels ? size_of_mipmaps(&twin, wish->levels, device) : size_of_array(&twin, device);
}

/* One call that makes an array, and what is charged for it. */
struct making {
    struct attempt attempt;
    struct array_record array_record;
};

static struct making begin(const struct wish *wish) {
    struct making making = {0};
    CUdevice device;
    if (!container_is_limited() || !takes_memory(wish) || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return making;
    making.array_record = (struct array_record){.device = device, .bytes = size_of(wish, device)};
    making.attempt = array_charge_begin(wish->what, &making.array_record);
    making.array_record.card = making.attempt.reservation.card;
    return making;
}

static CUresult undo(const struct wish *wish, void *handle) {
    if (wish->levels)
        REAL(cuMipmappedArrayDestroy)(handle);
    else
        REAL(cuArrayDestroy)(handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult finish(struct making *making, const struct wish *wish, CUresult result, void *handle) {
    if (!making->attempt.is_charged) return result;
    if (result == CUDA_SUCCESS && !array_records_add((uint64_t)handle, making->array_record))
        result = undo(wish, handle);
    if (result != CUDA_SUCCESS) array_charge_take_back(&making->array_record);
    attempt_end(&making->attempt);
    return result;
}

/* The arguments are the real function's. */
#define MAKE(wish, name, handle, ...)                                                    \
    do {                                                                                 \
        struct making making = begin(wish);                                              \
        if (making.attempt.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;                  \
        CUresult result;                                                                 \
        do result = REAL(name)(handle, __VA_ARGS__);                                     \
        while (attempt_retry(&making.attempt, result));                                  \
        return finish(&making, wish, result, result == CUDA_SUCCESS ? *(handle) : NULL); \
    } while (0)

EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    if (!array || !descriptor) return REAL(cuArray3DCreate_v2)(array, descriptor);
    struct wish wish = {"cuArray3DCreate_v2", *descriptor, 0};
    MAKE(&wish, cuArray3DCreate_v2, array, descriptor);
}

EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor) {
    if (!array || !descriptor) return REAL(cuArrayCreate_v2)(array, descriptor);
    struct wish wish = {"cuArrayCreate_v2",
                        {descriptor->Width, descriptor->Height, 0, descriptor->Format, descriptor->NumChannels, 0},
                        0};
    MAKE(&wish, cuArrayCreate_v2, array, descriptor);
}

/* The entries of before CUDA 3.2, with 32-bit sizes. */
EXPORT CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor) {
    if (!array || !descriptor) return REAL(cuArray3DCreate)(array, descriptor);
    const CUDA_ARRAY3D_DESCRIPTOR_v1 *of = descriptor;
    struct wish wish = {
        "cuArray3DCreate", {of->Width, of->Height, of->Depth, of->Format, of->NumChannels, of->Flags}, 0};
    MAKE(&wish, cuArray3DCreate, array, descriptor);
}

EXPORT CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor) {
    if (!array || !descriptor) return REAL(cuArrayCreate)(array, descriptor);
    const CUDA_ARRAY_DESCRIPTOR_v1 *of = descriptor;
    struct wish wish = {"cuArrayCreate", {of->Width, of->Height, 0, of->Format, of->NumChannels, 0}, 0};
    MAKE(&wish, cuArrayCreate, array, descriptor);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *mipmaps, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                       unsigned levels) {
    if (!mipmaps || !descriptor || levels == 0) return REAL(cuMipmappedArrayCreate)(mipmaps, descriptor, levels);
    struct wish wish = {"cuMipmappedArrayCreate", *descriptor, levels};
    MAKE(&wish, cuMipmappedArrayCreate, mipmaps, descriptor, levels);
}

static void finish_end(uint64_t handle, const struct array_record *array_record, CUresult result) {
    if (result == CUDA_SUCCESS && array_record) array_charge_take_back(array_record);
    if (result == CUDA_SUCCESS) virtual_memory_end_owner(handle);
    if (result != CUDA_SUCCESS && array_record) array_records_add(handle, *array_record);
}

/* Taken before the driver's call, for after it another thread may be given the same handle. */
#define DESTROY(name, handle)                                                 \
    do {                                                                      \
        struct array_record array_record;                                     \
        if (!container_is_limited()) return REAL(name)(handle);               \
        int call_slot = charge_begin_call();                                  \
        bool known = array_records_take((uint64_t)(handle), &array_record);   \
        CUresult result = REAL(name)(handle);                                 \
        finish_end((uint64_t)(handle), known ? &array_record : NULL, result); \
        charge_end_call(call_slot);                                           \
        return result;                                                        \
    } while (0)

EXPORT CUresult cuArrayDestroy(CUarray array) { DESTROY(cuArrayDestroy, array); }

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmaps) { DESTROY(cuMipmappedArrayDestroy, mipmaps); }
