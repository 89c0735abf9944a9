/* The memory of graphs' own allocations. A device's graphs share it; the driver takes what is missing when a graph is
 * uploaded or launched, and keeps it until it is trimmed. How much is missing can be told, but where a graph was
 * launched that leaves allocations to others: what of it is in use, the driver does not say. */
#ifndef VGPU_HOOKS_GRAPHS_GRAPH_MEMORY_H
#define VGPU_HOOKS_GRAPHS_GRAPH_MEMORY_H

#include "charge/attempt.h"
#include "charge/memory_class.h"

/* What a device's graphs held before a call that may change it, and what was charged for that. */
struct graph_call {
    int device;
    bool is_growth_known; /* no more is missing than was charged */
    uint64_t reserved_before;
    struct attempt attempt;
};

struct graph_calls {
    int count;
    struct graph_call devices[REGION_CARDS];
};

/* Before a graph is uploaded or launched: on each device where it has a need, charges what is missing of it. False: it
 * is refused, and the driver must not be called. */
bool graph_memory_begin(const char *function_name, CUgraphExec graph, struct graph_calls *calls);

/* Whether it could be told what is missing. Where not, what is idle was trimmed, nothing is charged, and the graph is
 * to be uploaded first; after that, charges what it took, or undoes it and says that it does not fit. */
bool graph_memory_is_growth_known(const struct graph_calls *calls);
bool graph_memory_fits(struct graph_calls *calls);

/* Before a call that takes nothing. */
void graph_memory_begin_trim(const char *function_name, CUdevice device, struct graph_calls *calls);

/* After the call: charged is what they hold now. */
void graph_memory_end(struct graph_calls *calls);

/* In a span: takes back what is held no more on a card, the region's row, or on all with -1; with `trim` after what no
 * graph uses was given back, which the next launch takes again. */
void graph_memory_correct(int card, bool is_trimming);

/* Trimming gives back what no graph uses. */
extern const struct memory_class graph_memory_class;

#endif
