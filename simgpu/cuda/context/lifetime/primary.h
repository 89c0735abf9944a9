/* The primary context of each device: one for all its users, counted by references. */
#ifndef SIMGPU_CUDA_CONTEXT_LIFETIME_PRIMARY_H
#define SIMGPU_CUDA_CONTEXT_LIFETIME_PRIMARY_H

#include <cuda.h>

CUresult primary_retain(CUdevice dev, CUcontext *out);
void primary_release(CUdevice dev);

#endif
