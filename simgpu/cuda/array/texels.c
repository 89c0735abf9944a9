/* Only formats with plain channels are simulated. */
#include "cuda/array/texels.h"

#include "cuda/allocation/allocation.h"
#include "cuda/context/context.h"
#include "cuda/memory/allocation_free.h"
#include "cuda/memory/memory.h"
#include "hardware/units.h"

#define BLOCK_WIDTH  64
#define BLOCK_HEIGHT 8
#define MAX_WIDTH    131072 /* of 1 and of 2 dimensions */
#define MAX_HEIGHT   65536
#define MAX_3D       16384
#define MAX_LAYERS   2048

static unsigned channel_bytes(CUarray_format format) {
    switch ((int)format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return 4;
        default:
            return 0;
    }
}

static bool extent_is_valid(const CUDA_ARRAY3D_DESCRIPTOR *of) {
    bool is_layered = (of->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    if (of->Depth > 0 && !is_layered)
        return of->Height > 0 && of->Width <= MAX_3D && of->Height <= MAX_3D && of->Depth <= MAX_3D;
    return (!is_layered || of->Depth > 0) && of->Depth <= MAX_LAYERS && of->Height <= MAX_HEIGHT &&
           of->Width <= MAX_WIDTH;
}

bool texels_are_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    unsigned channels = descriptor->NumChannels;
    bool is_texel = channel_bytes(descriptor->Format) > 0 && (channels == 1 || channels == 2 || channels == 4);
    return is_texel && descriptor->Width > 0 && extent_is_valid(descriptor);
}

uint64_t texels_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    uint64_t is_texel = (uint64_t)channel_bytes(descriptor->Format) * descriptor->NumChannels;
    uint64_t row = round_up(descriptor->Width * is_texel, BLOCK_WIDTH);
    uint64_t rows = descriptor->Height > 1 ? round_up(descriptor->Height, BLOCK_HEIGHT) : 1;
    return row * rows * (descriptor->Depth > 0 ? descriptor->Depth : 1);
}

CUresult texels_allocate(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t size, CUcontext *context,
                         CUdeviceptr *memory) {
    CUresult result = context_current(context);
    bool has_no_memory = (descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
    *memory = 0;
    return result != CUDA_SUCCESS || has_no_memory ? result : memory_allocate(*context, memory, size, true);
}

void texels_free(CUdeviceptr memory) {
    if (memory != 0) allocation_free(allocation_at(memory));
}
