/* Wrappers that create and destroy arrays. The size of an array depends on the driver's layout of its texels, so the
 * driver is asked before the array is created. It answers only for arrays with deferred mapping, so a trial array is
 * created with that flag, which takes no memory and 5 us. Arrays with deferred mapping, and sparse arrays, take no
 * memory themselves: it is made by cuMemCreate, and charged there. */
#include "books/arrays/array_records.h"
#include "charge/reserve/attempt.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/array_charge.h"
#include "hooks/memory/virtual_memory.h"

struct array_request {
    const char *function_name;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned levels; /* of a mipmapped array; 0: a plain array */
};

static bool takes_memory(const struct array_request *request) {
    return (request->descriptor.Flags & (CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SPARSE)) == 0;
}

static uint64_t required_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *trial, CUdevice device) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUarray array;
    if (REAL(cuArray3DCreate_v2)(&array, trial) != CUDA_SUCCESS) return 0;
    REAL(cuArrayGetMemoryRequirements)(&needs, array, device);
    REAL(cuArrayDestroy)(array);
    return needs.size;
}

static uint64_t required_mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *trial, unsigned levels, CUdevice device) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    CUmipmappedArray mipmaps;
    if (REAL(cuMipmappedArrayCreate)(&mipmaps, trial, levels) != CUDA_SUCCESS) return 0;
    REAL(cuMipmappedArrayGetMemoryRequirements)(&needs, mipmaps, device);
    REAL(cuMipmappedArrayDestroy)(mipmaps);
    return needs.size;
}

/* 0 if the driver refuses the trial array, for then it refuses the array too (every kind tried on an H200,
 * driver 580). */
static uint64_t required_bytes(const struct array_request *request, CUdevice device) {
    CUDA_ARRAY3D_DESCRIPTOR trial = request->descriptor;
    trial.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
    return request->levels ? required_mipmap_bytes(&trial, request->levels, device)
                           : required_array_bytes(&trial, device);
}

struct array_creation {
    struct attempt attempt;
    struct array_record array_record;
};

static struct array_creation begin_creation(const struct array_request *request) {
    struct array_creation creation = {0};
    CUdevice device;
    if (!container_is_limited() || !takes_memory(request) || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        return creation;
    creation.array_record = (struct array_record){.device = device, .bytes = required_bytes(request, device)};
    creation.attempt = array_charge_begin(request->function_name, &creation.array_record);
    creation.array_record.card = creation.attempt.reservation.card;
    return creation;
}

static CUresult undo_creation(const struct array_request *request, void *handle) {
    if (request->levels)
        REAL(cuMipmappedArrayDestroy)(handle);
    else
        REAL(cuArrayDestroy)(handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult finish_creation(struct array_creation *creation, const struct array_request *request, CUresult result,
                                void *handle) {
    if (!creation->attempt.is_charged) return result;
    if (result == CUDA_SUCCESS && !array_records_add((uint64_t)handle, creation->array_record))
        result = undo_creation(request, handle);
    if (result != CUDA_SUCCESS) array_charge_release(&creation->array_record);
    attempt_end(&creation->attempt);
    return result;
}

/* Body of a creating wrapper; the arguments from `handle` on are the real function's. */
#define CREATE(request, name, handle, ...)                                                             \
    do {                                                                                               \
        struct array_creation creation = begin_creation(request);                                      \
        if (creation.attempt.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;                              \
        CUresult result;                                                                               \
        do result = REAL(name)(handle, __VA_ARGS__);                                                   \
        while (attempt_retry(&creation.attempt, result));                                              \
        return finish_creation(&creation, request, result, result == CUDA_SUCCESS ? *(handle) : NULL); \
    } while (0)

EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    if (!array || !descriptor) return REAL(cuArray3DCreate_v2)(array, descriptor);
    struct array_request request = {"cuArray3DCreate_v2", *descriptor, 0};
    CREATE(&request, cuArray3DCreate_v2, array, descriptor);
}

EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor) {
    if (!array || !descriptor) return REAL(cuArrayCreate_v2)(array, descriptor);
    struct array_request request = {
        "cuArrayCreate_v2",
        {descriptor->Width, descriptor->Height, 0, descriptor->Format, descriptor->NumChannels, 0},
        0};
    CREATE(&request, cuArrayCreate_v2, array, descriptor);
}

/* The versions from before CUDA 3.2, with 32-bit sizes. */
EXPORT CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor) {
    if (!array || !descriptor) return REAL(cuArray3DCreate)(array, descriptor);
    const CUDA_ARRAY3D_DESCRIPTOR_v1 *old = descriptor;
    struct array_request request = {
        "cuArray3DCreate", {old->Width, old->Height, old->Depth, old->Format, old->NumChannels, old->Flags}, 0};
    CREATE(&request, cuArray3DCreate, array, descriptor);
}

EXPORT CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor) {
    if (!array || !descriptor) return REAL(cuArrayCreate)(array, descriptor);
    const CUDA_ARRAY_DESCRIPTOR_v1 *old = descriptor;
    struct array_request request = {"cuArrayCreate", {old->Width, old->Height, 0, old->Format, old->NumChannels, 0}, 0};
    CREATE(&request, cuArrayCreate, array, descriptor);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *mipmaps, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                       unsigned levels) {
    if (!mipmaps || !descriptor || levels == 0) return REAL(cuMipmappedArrayCreate)(mipmaps, descriptor, levels);
    struct array_request request = {"cuMipmappedArrayCreate", *descriptor, levels};
    CREATE(&request, cuMipmappedArrayCreate, mipmaps, descriptor, levels);
}

static void finish_destroy(uint64_t handle, const struct array_record *array_record, CUresult result) {
    if (result == CUDA_SUCCESS && array_record) array_charge_release(array_record);
    if (result == CUDA_SUCCESS) virtual_memory_end_owner(handle);
    if (result != CUDA_SUCCESS && array_record) array_records_add(handle, *array_record);
}

/* Body of a destroying wrapper. The record is taken before the driver's call, because another thread may be given the
 * handle of a destroyed array; it is put back if the call fails. */
#define DESTROY(name, handle)                                                        \
    do {                                                                             \
        struct array_record array_record;                                            \
        if (!container_is_limited()) return REAL(name)(handle);                      \
        int call_slot = charge_begin_call();                                         \
        bool is_known = array_records_take((uint64_t)(handle), &array_record);       \
        CUresult result = REAL(name)(handle);                                        \
        finish_destroy((uint64_t)(handle), is_known ? &array_record : NULL, result); \
        charge_end_call(call_slot);                                                  \
        return result;                                                               \
    } while (0)

EXPORT CUresult cuArrayDestroy(CUarray array) { DESTROY(cuArrayDestroy, array); }

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmaps) { DESTROY(cuMipmappedArrayDestroy, mipmaps); }
