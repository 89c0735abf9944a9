/* The physical memory bound to a multicast object. */
#ifndef SIMGPU_CUDA_VMM_MULTICAST_BINDINGS_H
#define SIMGPU_CUDA_VMM_MULTICAST_BINDINGS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/vmm/multicast_state.h"
#include "cuda/vmm/physical.h"

CUresult binding_add(struct multicast *multicast, uint64_t offset, uint64_t size, struct physical *memory);
/* Returns false when there is no such binding. */
bool binding_remove(struct multicast *multicast, CUdevice device, uint64_t offset, uint64_t size);
bool bindings_overlap(const struct multicast *multicast, CUdevice device, uint64_t offset, uint64_t size);

#endif
