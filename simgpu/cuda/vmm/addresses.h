/* Reserved addresses, and the physical memory mapped to them. */
#ifndef SIMGPU_CUDA_VMM_ADDRESSES_H
#define SIMGPU_CUDA_VMM_ADDRESSES_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/vmm/physical.h"

/* Whether one mapping of cuMemMap covers the range, and the program has access to it. */
bool mapping_holds(CUdeviceptr address, uint64_t size);
/* The physical memory of the mapping that covers the range; NULL when there is none. */
struct physical *physical_mapped(CUdeviceptr address, uint64_t size);

#endif
