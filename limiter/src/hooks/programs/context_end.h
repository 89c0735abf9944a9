/* What the wrappers that end contexts share. When a context ends, the driver frees the allocations in it without a call
 * for each; so afterwards the driver is asked about every recorded pointer, and those that it no longer knows are
 * released. Pools, physical memory and the memory of graphs belong to the device and outlive its contexts (measured on
 * an H200, driver 580). */
#ifndef VGPU_HOOKS_PROGRAMS_CONTEXT_END_H
#define VGPU_HOOKS_PROGRAMS_CONTEXT_END_H

#include "compute/queue/queue_page.h"
#include "driver/abi.h"

struct context_end {
    int device;    /* on which the contexts end; -1: unknown */
    int call_slot; /* of charge_begin_call */
    struct hidden_pages pages;
};

/* Before the driver's call that may end `context`, or, where that is NULL, every context on `device`. */
struct context_end context_end_begin(int device, CUcontext context);

/* After the driver's call. `has_ended` is false where it is known that no context has ended. */
void context_end_finish(const struct context_end *end, bool has_ended);

/* Device of a context, which need not be current; -1 if the driver does not say. */
int context_end_device(CUcontext context);

#endif
