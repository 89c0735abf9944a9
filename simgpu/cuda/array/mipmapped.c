/* The levels of a mipmapped array share one allocation. Each level has half the extent of the level before. */
#include "cuda/array/mipmapped.h"

#include <stdlib.h>

#include "cuda/array/mappings.h"
#include "cuda/array/texels.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "hardware/export.h"

static CUmipmappedArray mipmaps;

bool mipmap_exists(CUmipmappedArray mipmap) {
    CUmipmappedArray found = mipmaps;
    while (found && found != mipmap) found = found->next;
    return found != NULL;
}

static size_t half(size_t extent, unsigned times) {
    size_t halved = extent >> times;
    return extent == 0 || halved > 0 ? halved : 1;
}

/* The descriptor of a level: each extent but the number of layers is halved. */
static CUDA_ARRAY3D_DESCRIPTOR at_level(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned level) {
    CUDA_ARRAY3D_DESCRIPTOR smaller = *descriptor;
    smaller.Width = half(descriptor->Width, level);
    smaller.Height = half(descriptor->Height, level);
    if ((descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0)
        smaller.Depth = half(descriptor->Depth, level);
    return smaller;
}

/* The number of levels asked for, but at least 1 and no more than down to a single texel. */
static unsigned levels_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned asked) {
    size_t largest =
        descriptor->Width | descriptor->Height | descriptor->Depth; /* has the highest bit of the largest extent */
    unsigned most = 0;
    while (most < MAX_LEVELS && largest >> most != 0) most++;
    unsigned wanted = asked < 1 ? 1 : asked;
    return wanted < most ? wanted : most;
}

uint64_t mipmap_size(CUmipmappedArray mipmap) {
    uint64_t sum = 0;
    for (unsigned level = 0; level < mipmap->levels; level++) sum += texels_size(&mipmap->level[level].descriptor);
    return sum;
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                       unsigned levels) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUresult forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS) return forbidden;
    if (!array || !descriptor) return CUDA_ERROR_INVALID_VALUE;
    if (!texels_are_valid(descriptor)) return CUDA_ERROR_INVALID_VALUE;
    CUmipmappedArray made = calloc(1, sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    made->descriptor = *descriptor;
    made->levels = levels_of(descriptor, levels);
    for (unsigned level = 0; level < made->levels; level++) made->level[level].descriptor = at_level(descriptor, level);
    CUresult result = texels_allocate(&made->descriptor, mipmap_size(made), &made->context, &made->memory);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    made->next = mipmaps;
    mipmaps = made;
    *array = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmap, unsigned level) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!array) return CUDA_ERROR_INVALID_VALUE;
    if (!mipmap_exists(mipmap)) return CUDA_ERROR_INVALID_HANDLE;
    if (level >= mipmap->levels) return CUDA_ERROR_INVALID_VALUE;
    *array = &mipmap->level[level];
    return CUDA_SUCCESS;
}

/* Unlinks and frees the array, but not its memory; `link` then points to the next one. */
static void drop(CUmipmappedArray *link) {
    CUmipmappedArray gone = *link;
    array_unmap_all(gone);
    *link = gone->next;
    free(gone);
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    for (CUmipmappedArray *link = &mipmaps; *link; link = &(*link)->next) {
        if (*link == mipmap) {
            texels_free(mipmap->memory);
            drop(link);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_HANDLE;
}

void mipmaps_free_of(CUcontext context) {
    for (CUmipmappedArray *link = &mipmaps; *link;)
        if ((*link)->context == context)
            drop(link);
        else
            link = &(*link)->next;
}
