/* Bytes that each instantiated graph needs for its own allocations, for each device. Every function takes
 * LOCK_GRAPH_NEEDS, except where it says that it needs no lock. Pure apart from that. */
#ifndef VGPU_BOOKS_GRAPHS_GRAPH_NEEDS_H
#define VGPU_BOOKS_GRAPHS_GRAPH_NEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "region/region.h"

/* Whether there was ever a graph that needs memory. Needs no lock. */
bool graph_needs_any(void);

/* Whether there was ever a graph that does not free all of its allocations. Needs no lock. */
bool graph_needs_any_unfreed(void);

/* Sets the needs of a graph that was instantiated or updated, by device. `leaves`: it does not free all of its
 * allocations. */
void graph_needs_put(uint64_t graph, const uint64_t bytes[REGION_CARDS], bool leaves);

/* Forgets a graph that was destroyed. */
void graph_needs_remove(uint64_t graph);

/* Fills `bytes[0]` to `bytes[n - 1]` with a graph's needs, by device, and returns n; 0 where it needs nothing. */
int graph_needs_of(uint64_t graph, uint64_t bytes[REGION_CARDS]);

#endif
