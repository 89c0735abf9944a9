/* Device memory as cuMemAlloc takes it. */
#ifndef SIMGPU_CUDA_MEMORY_MEMORY_H
#define SIMGPU_CUDA_MEMORY_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Arrays never share a page with other memory. */
CUresult memory_allocate(CUcontext context, CUdeviceptr *address, uint64_t size, bool for_arrays);

#endif
