/* Local memory of kernels, which each context has for every thread that its card can run. */
#ifndef SIMGPU_CUDA_CONTEXT_LOCAL_MEMORY_H
#define SIMGPU_CUDA_CONTEXT_LOCAL_MEMORY_H

#include <cuda.h>
#include <stdint.h>

/* Charges what the context lacks for a kernel with this local memory, in bytes per thread. */
CUresult local_grow(CUcontext context, uint64_t bytes);

/* Bytes that the context has per thread. */
uint64_t local_stack(CUcontext context);

#endif
