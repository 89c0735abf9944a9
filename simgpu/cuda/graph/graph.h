/* Graphs and their nodes. */
#ifndef SIMGPU_CUDA_GRAPH_GRAPH_H
#define SIMGPU_CUDA_GRAPH_GRAPH_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nodes are listed in the order in which they were added. A launch runs them in that order, which is valid, because a
 * node is added after the nodes it depends on. */
struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    CUgraphNodeType type;
    CUdeviceptr address; /* of the memory that the node allocates or frees */
    uint64_t size;
    CUdevice device;
    bool is_paired;                 /* an allocation that a node of the graph frees, or that node */
    CUDA_KERNEL_NODE_PARAMS kernel; /* as the program gave them */
    CUDA_MEM_ALLOC_NODE_PARAMS allocation;
    uint64_t duration_ns;
    uint64_t local; /* bytes of local memory per thread */
    bool uses_heap; /* calls malloc */
    CUDA_HOST_NODE_PARAMS call;
    CUgraphNode origin; /* of a step of an instance: the node that it is a copy of */
};

struct CUgraph_st {
    struct CUgraph_st *next;
    struct CUgraphNode_st *nodes;
    CUdeviceptr addresses; /* the first address of its allocations */
};

CUgraph graph_make(void); /* NULL when out of memory */
void graph_free(CUgraph graph);
bool graph_exists(CUgraph graph); /* false for NULL */
/* Whether the address is one of an allocation node of any graph. */
bool graph_has_addresses(CUdeviceptr address);
/* Whether the graph has nodes that allocate or free. */
bool graph_allocates(CUgraph graph);
CUresult graph_add(CUgraphNode *out, CUgraph graph, const struct CUgraphNode_st *node);

#endif
