/* Physical memory mapped to parts of sparse and deferred arrays. */
#ifndef SIMGPU_CUDA_ARRAY_MAPPINGS_H
#define SIMGPU_CUDA_ARRAY_MAPPINGS_H

#include <cuda.h>

#include "cuda/vmm/physical.h"

/* A part of an array that has memory, identified by the bytes with which the program named it. */
struct array_part {
    struct array_part *next;
    const void *array; /* CUarray or CUmipmappedArray */
    CUarraySparseSubresourceType type;
    unsigned char name[sizeof(((CUarrayMapInfo *)0)->subresource)];
    struct physical *physical;
};

/* Maps the handle's memory to the part, in place of what was mapped there. CUDA_ERROR_INVALID_VALUE when the memory was
 * not made for that use. */
CUresult array_map(const struct array_part *part, CUmemGenericAllocationHandle handle);
void array_unmap(const struct array_part *part);
/* Unmaps all parts of an array. */
void array_unmap_all(const void *array);

#endif
