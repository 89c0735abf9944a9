/* Model of the memory that a graph's own allocations (memory nodes) take on a card. The driver gives a graph
 * consecutive blocks of 32 MiB or more. An allocation that passes the end of the last block takes a new block of its
 * own size, rounded up; an allocation at addresses that an earlier allocation of the graph has freed takes nothing.
 * Graphs share the blocks that exist (measured on an H200, driver 580). Pure. */
#ifndef VGPU_BOOKS_GRAPHS_GRAPH_BLOCKS_H
#define VGPU_BOOKS_GRAPHS_GRAPH_BLOCKS_H

#include <stdint.h>

struct graph_blocks {
    uint64_t sum; /* bytes of all blocks */
    uint64_t end; /* address behind the last block */
};

/* Adds an allocation; the order is that in which they were added to the graph. */
void graph_blocks_add(struct graph_blocks *blocks, uint64_t address, uint64_t bytes);

#endif
