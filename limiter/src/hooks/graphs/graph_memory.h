/* Charges the memory of graphs' own allocations (memory nodes).
 *
 * All graphs of a device share this memory. The driver allocates what is missing when a graph is uploaded or launched,
 * and keeps it until cuDeviceGraphMemTrim. How much is missing follows from the graph's need and what is reserved,
 * unless a graph that does not free its allocations was ever instantiated: then the driver does not tell how much of
 * the reserved memory is in use. In that case the whole need is charged, and if it does not fit, the graph is uploaded
 * first and the growth measured.
 *
 * The caller holds no lock. */
#ifndef VGPU_HOOKS_GRAPHS_GRAPH_MEMORY_H
#define VGPU_HOOKS_GRAPHS_GRAPH_MEMORY_H

#include "charge/reserve/attempt.h"
#include "charge/reserve/memory_class.h"

/* A call that may change what the graphs of one device hold. */
struct graph_call {
    int device;
    bool is_growth_known;     /* `attempt` has charged all that the call can take */
    uint64_t reserved_before; /* bytes that the device's graphs held before the call */
    struct attempt attempt;   /* the charge made ahead; `is_charged` is false if nothing was missing */
};

/* A call on every device where its graph has a need. */
struct graph_calls {
    int count;
    struct graph_call devices[REGION_CARDS];
};

/* Reserves, on each device, what a graph lacks for its own allocations, before it is uploaded or launched. False if
 * that is over a limit: nothing is charged, and the driver must not be called. */
bool graph_memory_begin(const char *function_name, CUgraphExec graph, struct graph_calls *calls);

/* Whether all growth is charged. If not, idle memory was trimmed and only the least growth is charged: the caller
 * uploads the graph and calls `graph_memory_fits` before it launches. */
bool graph_memory_is_growth_known(const struct graph_calls *calls);

/* After the upload: charges what it took beyond the reservation. False if that is over a limit: the memory was trimmed
 * again, and the refusal reported. */
bool graph_memory_fits(struct graph_calls *calls);

/* Begins a call that takes no memory on `device` but may give some back. */
void graph_memory_begin_trim(const char *function_name, CUdevice device, struct graph_calls *calls);

/* Ends the call: sets the charge to what the devices' graphs hold now. Not called after `graph_memory_begin` was
 * false. */
void graph_memory_end(struct graph_calls *calls);

/* Releases what is charged for graphs beyond what they hold, on a card (the region's row; -1: all cards). `is_trimming`
 * has the driver give back idle memory first, which the next launch takes again. The calling thread has a call open
 * (charge/reserve/charge.h). */
void graph_memory_correct(int card, bool is_trimming);

/* Trims by giving back the memory that no graph uses. */
extern const struct memory_class graph_memory_class;

#endif
