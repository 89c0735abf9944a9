/* The physical memory bound to a multicast object. */
#ifndef SIMGPU_CUDA_VMM_MULTICAST_BINDINGS_H
#define SIMGPU_CUDA_VMM_MULTICAST_BINDINGS_H

#include "cuda/vmm/multicast_state.h"
#include "cuda/vmm/physical.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

CUresult binding_add(Multicast *multicast, uint64_t offset, uint64_t size, Physical *memory);
/* Returns false when there is no such binding. */
bool binding_remove(Multicast *multicast, CUdevice device, uint64_t offset, uint64_t size);
bool bindings_overlap(const Multicast *multicast, CUdevice device, uint64_t offset, uint64_t size);

#endif
