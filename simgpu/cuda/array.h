/* Arrays, plain and mipmapped, shared by the files about them. */
#ifndef CUDA_ARRAYS_H
#define CUDA_ARRAYS_H

#include "driver.h"

#define MAX_LEVELS 18 /* of the largest extent */

/* A plain array, and all that its level of a mipmapped array is. */
struct CUarray_st {
    struct CUarray_st *next;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    CUdeviceptr memory; /* 0 for a sparse or deferred one, and for a level */
};

struct CUmipmappedArray_st {
    struct CUmipmappedArray_st *next;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    CUdeviceptr memory; /* of all levels together */
    unsigned levels;
    struct CUarray_st level[MAX_LEVELS];
};

/* Whether a card can have such an array, and the bytes it takes: hardware keeps texels in blocks of 64 bytes by 8 rows,
 * so a row is rounded up to 64 bytes and the height to 8. */
bool texels_are_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
uint64_t texels_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* The memory of such an array in the current context; none for a sparse or deferred one. */
CUresult texels_allocate(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t size, CUcontext *context,
                         CUdeviceptr *memory);
void texels_free(CUdeviceptr memory);

bool array_exists(CUarray array);
bool mipmap_exists(CUmipmappedArray mipmap);
uint64_t mipmap_size(CUmipmappedArray mipmap);
/* Lets go of the physical memory mapped to the array of either kind. */
void array_unmap(const void *array);
void mipmaps_free_of(CUcontext context);

#endif
