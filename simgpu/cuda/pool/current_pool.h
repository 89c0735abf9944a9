/* The pool that each device allocates from. */
#ifndef SIMGPU_CUDA_POOL_CURRENT_POOL_H
#define SIMGPU_CUDA_POOL_CURRENT_POOL_H

#include <cuda.h>

CUmemoryPool pool_current(CUdevice ordinal); /* NULL when out of memory */

#endif
