/* Reads from a graph's nodes how much memory it will take when it is instantiated and launched. Calls the driver; the
 * caller holds no lock. */
#ifndef VGPU_HOOKS_GRAPHS_GRAPH_PLAN_H
#define VGPU_HOOKS_GRAPHS_GRAPH_PLAN_H

#include "books/graphs/graph_blocks.h"
#include "driver/abi.h"
#include "region/region.h"

struct graph_plan {
    uint64_t local_growth; /* bytes by which instantiation grows the current context, for local memory of kernels */
    struct graph_blocks blocks[REGION_CARDS]; /* by device: what its own allocations take when it is launched */
    uint64_t unfreed_addresses; /* sum of addresses allocated minus addresses freed; not 0: it leaves allocations */
};

/* The function of a kernel node, which names it as a CUfunction or as a CUkernel. */
CUfunction graph_plan_function(CUfunction function, CUkernel kernel);

/* Fills `plan` from all nodes, including those of child graphs and conditional bodies. Nodes that the driver does not
 * tell about are left out. */
void graph_plan_read(CUgraph graph, struct graph_plan *plan);

#endif
