/* Creation and destruction of contexts with all that belongs to them. */
#ifndef SIMGPU_CUDA_CONTEXT_LIFETIME_LIFETIME_H
#define SIMGPU_CUDA_CONTEXT_LIFETIME_LIFETIME_H

#include <cuda.h>
#include <stdbool.h>

CUresult context_make(CUcontext *out, CUdevice dev, unsigned flags, bool is_primary);
void context_destroy(CUcontext context);

#endif
