/* Arrays with one level. */
#ifndef SIMGPU_CUDA_ARRAY_ARRAY_H
#define SIMGPU_CUDA_ARRAY_ARRAY_H

#include <cuda.h>
#include <stdbool.h>

/* An array, or one level of a mipmapped array. */
struct CUarray_st {
    struct CUarray_st *next;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    CUdeviceptr memory; /* 0 for a sparse or deferred array, and for a level */
};

bool array_exists(CUarray array);
/* Frees the context's arrays, but not their memory, which goes with the context's allocations. */
void arrays_free_of(CUcontext context);

#endif
