/* Memory that all graphs of a device share. */
#ifndef SIMGPU_CUDA_GRAPH_GRAPH_MEMORY_H
#define SIMGPU_CUDA_GRAPH_GRAPH_MEMORY_H

#include <cuda.h>
#include <stdint.h>

#include "hardware/units.h"

#define GRAPH_BLOCK (32 * MIB)

/* Reserves what is missing for blocks of this many bytes, in addition to the blocks in use. */
CUresult graph_memory_reserve(CUdevice device, uint64_t blocks);
/* Counts a launch that used `highest` more bytes at its peak, of which `kept` are still in use. */
void graph_memory_used(CUdevice device, uint64_t highest, uint64_t kept);
void graph_memory_release(CUdevice device, uint64_t bytes);

#endif
