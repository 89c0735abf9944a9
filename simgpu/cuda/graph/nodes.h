/* The kinds of nodes of a graph. */
#ifndef SIMGPU_CUDA_GRAPH_NODES_H
#define SIMGPU_CUDA_GRAPH_NODES_H

#include <cuda.h>
#include <stdint.h>

CUresult graph_add_kernel(CUgraph graph, CUfunction function);
CUresult graph_add_allocation(CUgraph graph, CUdevice device, uint64_t size, CUdeviceptr *address);
CUresult graph_add_free(CUgraph graph, CUdeviceptr address);

#endif
