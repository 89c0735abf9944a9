/* The pool that each device allocates from. */
#ifndef CUDA_POOL_DEVICES_H
#define CUDA_POOL_DEVICES_H

#include <cuda.h>

CUmemoryPool pool_current(CUdevice ordinal); /* NULL when out of memory */

#endif
