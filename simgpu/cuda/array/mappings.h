/* Physical memory mapped to parts of sparse and deferred arrays. */
#ifndef SIMGPU_CUDA_ARRAY_MAPPINGS_H
#define SIMGPU_CUDA_ARRAY_MAPPINGS_H

#include "cuda/vmm/physical.h"

#include <cuda.h>

/* A part of an array that has memory, identified by the bytes with which the program named it. */
typedef struct ArrayPart {
    struct ArrayPart *next;
    const void *array; /* CUarray or CUmipmappedArray */
    CUarraySparseSubresourceType type;
    unsigned char name[sizeof(((CUarrayMapInfo *)0)->subresource)];
    Physical *physical;
} ArrayPart;

/* Maps the handle's memory to the part, in place of what was mapped there. CUDA_ERROR_INVALID_VALUE when the memory was
 * not made for that use. */
CUresult array_map(const ArrayPart *part, CUmemGenericAllocationHandle handle);
void array_unmap(const ArrayPart *part);
/* Unmaps all parts of an array. */
void array_unmap_all(const void *array);

#endif
