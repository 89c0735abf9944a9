/* The memory of arrays. */
#ifndef SIMGPU_CUDA_ARRAY_TEXELS_H
#define SIMGPU_CUDA_ARRAY_TEXELS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether a card can have an array with this descriptor. */
bool texels_are_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* Bytes of an array with this descriptor. Hardware stores texels in blocks of 64 bytes by 8 rows, so a row is rounded
 * up to 64 bytes and the height to 8 rows. */
uint64_t texels_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* Allocates the memory of an array in the current context. A sparse or deferred array gets none: address 0. */
CUresult texels_allocate(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t size, CUcontext *context,
                         CUdeviceptr *memory);
void texels_free(CUdeviceptr memory);

#endif
