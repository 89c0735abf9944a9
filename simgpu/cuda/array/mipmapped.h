/* Mipmapped arrays. */
#ifndef SIMGPU_CUDA_ARRAY_MIPMAPPED_H
#define SIMGPU_CUDA_ARRAY_MIPMAPPED_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/array/array.h"

#define MAX_LEVELS 18 /* of the largest extent */

struct CUmipmappedArray_st {
    struct CUmipmappedArray_st *next;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    CUdeviceptr memory; /* of all levels together */
    unsigned levels;
    struct CUarray_st level[MAX_LEVELS];
};

bool mipmap_exists(CUmipmappedArray mipmap);
uint64_t mipmap_size(CUmipmappedArray mipmap);
/* Frees the context's mipmapped arrays, but not their memory, which goes with the context's allocations. */
void mipmaps_free_of(CUcontext context);

#endif
