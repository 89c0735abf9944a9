/* Graphs, shared by the files about them. */
#ifndef CUDA_GRAPH_H
#define CUDA_GRAPH_H

#include "driver.h"

/* In the order in which they were added, which is one they may run in: a node comes after those it depends on. */
struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    CUgraphNodeType type;
    CUdeviceptr address; /* what it allocates or frees */
    uint64_t size;
    CUdevice device;
    bool paired;                    /* an allocation that a node of the same graph frees, or that node */
    CUDA_KERNEL_NODE_PARAMS kernel; /* as given, and so told again */
    CUDA_MEM_ALLOC_NODE_PARAMS allocation;
    uint64_t duration_ns;
    uint64_t local;
};

struct CUgraph_st {
    struct CUgraph_st *next;
    struct CUgraphNode_st *nodes;
    CUdeviceptr addresses; /* from where on its allocations have theirs */
};

struct CUgraphExec_st {
    struct CUgraphExec_st *next;
    CUgraph graph; /* NULL once it is destroyed */
    unsigned long long flags;
    size_t count;
    struct CUgraphNode_st *steps; /* as the nodes were at instantiation */
};

CUgraph graph_make(void); /* NULL without memory */
bool graph_exists(CUgraph graph);
bool graph_has_addresses(CUdeviceptr address); /* of any graph */
bool graph_allocates(CUgraph graph);
CUresult graph_add(CUgraphNode *out, CUgraph graph, const struct CUgraphNode_st *node);
CUresult graph_add_kernel(CUgraph graph, CUfunction function);
CUresult graph_add_allocation(CUgraph graph, CUdevice device, uint64_t size, CUdeviceptr *address);
CUresult graph_add_free(CUgraph graph, CUdeviceptr address);
void instances_forget(CUgraph graph);
bool instance_exists(CUgraphExec exec);
/* Reserves what its next launch needs. */
CUresult instance_upload(CUgraphExec exec);

/* --- cuda/graph_memory.c: what graphs reserve of a device --- */

#define GRAPH_BLOCK (32 * SIM_MIB)

/* Takes what is missing for so many bytes in blocks beside those in use. */
CUresult graph_memory_reserve(CUdevice device, uint64_t blocks);
/* So many more bytes were in use for a while, of which `kept` still are. */
void graph_memory_used(CUdevice device, uint64_t highest, uint64_t kept);

#endif
