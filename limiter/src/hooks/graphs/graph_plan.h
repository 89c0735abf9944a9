/* What a graph will take of the cards when it is instantiated and launched. */
#ifndef VGPU_PLANS_H
#define VGPU_PLANS_H

#include "books/graph_blocks.h"
#include "driver/abi.h"
#include "region/region.h"

struct plan {
    uint64_t local; /* bytes by which the current context grows for its kernels, when it is instantiated */
    struct blocks blocks[REGION_CARDS]; /* by device: of its own allocations, when it is launched */
    uint64_t left;                      /* 0: it frees what it allocates */
};

/* What a kernel node launches, which it may name in either way. */
CUfunction plan_function(CUfunction function, CUkernel kernel);

/* Reads all nodes, those of child graphs too. */
void plan_read(CUgraph graph, struct plan *plan);

#endif
