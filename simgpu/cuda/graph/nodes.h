/* The kinds of nodes of a graph. */
#ifndef SIMGPU_CUDA_GRAPH_NODES_H
#define SIMGPU_CUDA_GRAPH_NODES_H

#include <cuda.h>
#include <stdint.h>

CUresult graph_add_kernel(CUgraph graph, CUfunction function);
CUresult graph_add_call(CUgraph graph, const CUDA_HOST_NODE_PARAMS *call);
/* Sets what a kernel node, or a step that is a copy of one, launches. */
CUresult graph_set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel);
CUresult graph_add_allocation(CUgraph graph, CUdevice device, uint64_t size, CUdeviceptr *address);
CUresult graph_add_free(CUgraph graph, CUdeviceptr address);

#endif
