/* Limits of contexts, and the heap of device code. */
#ifndef SIMGPU_CUDA_CONTEXT_LIMITS_H
#define SIMGPU_CUDA_CONTEXT_LIMITS_H

#include <cuda.h>
#include <stdbool.h>

/* Creates the context's heap, unless it exists, before a kernel runs. `is_used`: the kernel uses the heap. */
CUresult context_make_heap(CUcontext context, bool is_used);

#endif
