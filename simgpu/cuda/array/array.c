#include "cuda/array/array.h"

#include <stdlib.h>

#include "cuda/array/mappings.h"
#include "cuda/array/texels.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "hardware/export.h"

static CUarray arrays;

bool array_exists(CUarray array) {
    CUarray found = arrays;
    while (found && found != array) found = found->next;
    return found != NULL;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    CUcontext context;
    CUdeviceptr memory;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    if (!texels_are_valid(descriptor)) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = texels_allocate(descriptor, texels_size(descriptor), &context, &memory);
    if (result != CUDA_SUCCESS) return result;
    CUarray made = malloc(sizeof *made);
    if (!made) {
        texels_free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct CUarray_st){.next = arrays, .context = context, .descriptor = *descriptor, .memory = memory};
    arrays = made;
    *out = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *wanted) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!array || !wanted) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = wanted->Width, .Height = wanted->Height, .Format = wanted->Format, .NumChannels = wanted->NumChannels};
    return create(array, &descriptor);
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!array || !descriptor) return CUDA_ERROR_INVALID_VALUE;
    return create(array, descriptor);
}

/* The 32-bit forms of CUDA 2, like those of cuMemAlloc. */
EXPORT CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor) {
    (void)array;
    (void)descriptor;
    return CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor) {
    (void)array;
    (void)descriptor;
    return CUDA_ERROR_INVALID_CONTEXT;
}

/* Takes the level of a mipmapped array too, so the handle is not searched in the list. */
EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    *descriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = array->descriptor.Width,
                                          .Height = array->descriptor.Height,
                                          .Format = array->descriptor.Format,
                                          .NumChannels = array->descriptor.NumChannels};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    *descriptor = array->descriptor;
    return CUDA_SUCCESS;
}

/* Unlinks and frees the array, but not its memory; `link` then points to the next one. */
static void drop(CUarray *link) {
    CUarray gone = *link;
    array_unmap_all(gone);
    *link = gone->next;
    free(gone);
}

EXPORT CUresult cuArrayDestroy(CUarray array) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    for (CUarray *link = &arrays; *link; link = &(*link)->next) {
        if (*link == array) {
            texels_free(array->memory);
            drop(link);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_HANDLE;
}

void arrays_free_of(CUcontext context) {
    for (CUarray *link = &arrays; *link;)
        if ((*link)->context == context)
            drop(link);
        else
            link = &(*link)->next;
}
