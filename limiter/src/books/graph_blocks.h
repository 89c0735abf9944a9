/* What a graph's own allocations take of a card. The driver gives a graph blocks of 32 MiB and more, one after the
 * other, each as large as the allocation that passes the end of those before; an allocation after another's end, at the
 * same address, takes nothing. Graphs share what is there (measured on an H200, driver 580). Pure. */
#ifndef VGPU_BOOKS_GRAPH_BLOCKS_H
#define VGPU_BOOKS_GRAPH_BLOCKS_H

#include <stdint.h>

struct graph_blocks {
    uint64_t sum; /* bytes */
    uint64_t end; /* address of the end of the last one */
};

/* An allocation more, in the order in which they were added to the graph. */
void graph_blocks_add(struct graph_blocks *blocks, uint64_t address, uint64_t bytes);

#endif
