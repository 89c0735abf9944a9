/* What a graph will take of the cards when it is instantiated and launched. */
#ifndef VGPU_HOOKS_GRAPHS_GRAPH_PLAN_H
#define VGPU_HOOKS_GRAPHS_GRAPH_PLAN_H

#include "books/graph_blocks.h"
#include "driver/abi.h"
#include "region/region.h"

struct graph_plan {
    uint64_t local_growth; /* bytes by which the current context grows for its kernels, when it is instantiated */
    struct graph_blocks blocks[REGION_CARDS]; /* by device: of its own allocations, when it is launched */
    uint64_t unfreed_addresses;               /* 0: it frees what it allocates */
};

/* What a kernel node launches, which it may name in either way. */
CUfunction graph_plan_function(CUfunction function, CUkernel kernel);

/* Reads all nodes, those of child graphs too. */
void graph_plan_read(CUgraph graph, struct graph_plan *plan);

#endif
