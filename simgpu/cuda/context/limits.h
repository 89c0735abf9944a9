/* Limits of contexts, and the heap of device code. */
#ifndef SIMGPU_CUDA_CONTEXT_LIMITS_H
#define SIMGPU_CUDA_CONTEXT_LIMITS_H

#include <cuda.h>
#include <stdbool.h>

/* Creates the context's heap before a kernel runs that uses it, unless it exists. */
CUresult context_make_heap(CUcontext context, bool is_used);

#endif
