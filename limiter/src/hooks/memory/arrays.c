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

EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    if (!array || !descriptor) return REAL(cuArray3DCreate_v2)(array, descriptor);
    struct array_request request = {"cuArray3DCreate_v2", *descriptor, 0};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct array_creation creation = begin_creation(&request);
    for (int calls = 0; attempt_needs_call(&creation.attempt, calls, result); calls++)
        result = REAL(cuArray3DCreate_v2)(array, descriptor);
    return finish_creation(&creation, &request, result, result == CUDA_SUCCESS ? *array : NULL);
}

EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor) {
    if (!array || !descriptor) return REAL(cuArrayCreate_v2)(array, descriptor);
    struct array_request request = {
        "cuArrayCreate_v2",
        {descriptor->Width, descriptor->Height, 0, descriptor->Format, descriptor->NumChannels, 0},
        0};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct array_creation creation = begin_creation(&request);
    for (int calls = 0; attempt_needs_call(&creation.attempt, calls, result); calls++)
        result = REAL(cuArrayCreate_v2)(array, descriptor);
    return finish_creation(&creation, &request, result, result == CUDA_SUCCESS ? *array : NULL);
}

/* The versions from before CUDA 3.2, with 32-bit sizes. */
EXPORT CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor) {
    if (!array || !descriptor) return REAL(cuArray3DCreate)(array, descriptor);
    const CUDA_ARRAY3D_DESCRIPTOR_v1 *old = descriptor;
    struct array_request request = {
        "cuArray3DCreate", {old->Width, old->Height, old->Depth, old->Format, old->NumChannels, old->Flags}, 0};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct array_creation creation = begin_creation(&request);
    for (int calls = 0; attempt_needs_call(&creation.attempt, calls, result); calls++)
        result = REAL(cuArray3DCreate)(array, descriptor);
    return finish_creation(&creation, &request, result, result == CUDA_SUCCESS ? *array : NULL);
}

EXPORT CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor) {
    if (!array || !descriptor) return REAL(cuArrayCreate)(array, descriptor);
    const CUDA_ARRAY_DESCRIPTOR_v1 *old = descriptor;
    struct array_request request = {"cuArrayCreate", {old->Width, old->Height, 0, old->Format, old->NumChannels, 0}, 0};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct array_creation creation = begin_creation(&request);
    for (int calls = 0; attempt_needs_call(&creation.attempt, calls, result); calls++)
        result = REAL(cuArrayCreate)(array, descriptor);
    return finish_creation(&creation, &request, result, result == CUDA_SUCCESS ? *array : NULL);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *mipmaps, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                       unsigned levels) {
    if (!mipmaps || !descriptor || levels == 0) return REAL(cuMipmappedArrayCreate)(mipmaps, descriptor, levels);
    struct array_request request = {"cuMipmappedArrayCreate", *descriptor, levels};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct array_creation creation = begin_creation(&request);
    for (int calls = 0; attempt_needs_call(&creation.attempt, calls, result); calls++)
        result = REAL(cuMipmappedArrayCreate)(mipmaps, descriptor, levels);
    return finish_creation(&creation, &request, result, result == CUDA_SUCCESS ? *mipmaps : NULL);
}

/* An array that is destroyed. */
struct array_end {
    int call_slot; /* of charge_begin_call */
    bool is_known; /* `array_record` was recorded */
    struct array_record array_record;
};

/* The record is taken before the driver's call, because another thread may be given the handle of a destroyed array; it
 * is put back if the call fails. */
static struct array_end begin_destroy(const void *handle) {
    struct array_end ended = {.call_slot = charge_begin_call()};
    ended.is_known = array_records_take((uint64_t)handle, &ended.array_record);
    return ended;
}

static CUresult finish_destroy(const struct array_end *ended, const void *handle, CUresult result) {
    if (result == CUDA_SUCCESS && ended->is_known) array_charge_release(&ended->array_record);
    if (result == CUDA_SUCCESS) virtual_memory_end_owner((uint64_t)handle);
    if (result != CUDA_SUCCESS && ended->is_known) array_records_add((uint64_t)handle, ended->array_record);
    charge_end_call(ended->call_slot);
    return result;
}

EXPORT CUresult cuArrayDestroy(CUarray array) {
    if (!container_is_limited()) return REAL(cuArrayDestroy)(array);
    struct array_end ended = begin_destroy(array);
    return finish_destroy(&ended, array, REAL(cuArrayDestroy)(array));
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmaps) {
    if (!container_is_limited()) return REAL(cuMipmappedArrayDestroy)(mipmaps);
    struct array_end ended = begin_destroy(mipmaps);
    return finish_destroy(&ended, mipmaps, REAL(cuMipmappedArrayDestroy)(mipmaps));
}
