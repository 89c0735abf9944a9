/* The memory of a graph's instance: what its next launch reserves, and what its last launch left. */
#ifndef SIMGPU_CUDA_GRAPH_INSTANCE_INSTANCE_MEMORY_H
#define SIMGPU_CUDA_GRAPH_INSTANCE_INSTANCE_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "cuda/graph/graph.h"

struct CUgraphExec_st {
    struct CUgraphExec_st *next;
    CUgraph graph; /* NULL once it is destroyed */
    unsigned long long flags;
    size_t count;
    struct CUgraphNode_st *steps; /* copies of the nodes at instantiation */
};

/* Reserves what the next launch needs. */
CUresult instance_reserve(CUgraphExec exec);
/* Counts the allocations of a launch in the device's figures. */
void instance_count_use(CUgraphExec exec);
/* Whether an allocation of the last launch is not freed. */
bool instance_has_outstanding(CUgraphExec exec);
void instance_free_outstanding(CUgraphExec exec);
/* Adds the allocation of a node, which outlives the launch. */
CUresult instance_keep_allocation(const struct CUgraphNode_st *step, CUcontext context);

#endif
