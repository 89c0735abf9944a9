/* What each graph that can be launched needs for its own allocations, on each device. Pure but for its own lock. */
#ifndef VGPU_BOOKS_GRAPH_NEEDS_H
#define VGPU_BOOKS_GRAPH_NEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "region/region.h"

/* Whether there was ever a graph that needs anything, and one that leaves allocations to others. */
bool graph_needs_any(void);
bool graph_needs_any_left(void);

/* A graph was instantiated, or changed: its need in bytes. It is no more. */
void graph_needs_put(uint64_t graph, const uint64_t bytes[REGION_CARDS], bool leaves);
void graph_needs_remove(uint64_t graph);

/* Its needs, and on how many of the first devices there may be one; 0 where there is none. */
int graph_needs_of(uint64_t graph, uint64_t bytes[REGION_CARDS]);

#endif
