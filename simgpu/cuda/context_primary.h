/* The primary context of each device: one for all its users, counted by references. */
#ifndef CUDA_CONTEXT_PRIMARY_H
#define CUDA_CONTEXT_PRIMARY_H

#include <cuda.h>

CUresult primary_retain(CUdevice dev, CUcontext *out);
void primary_release(CUdevice dev);

#endif
