/* Clears the slots and charges of processes of this container that have ended. Takes LOCK_REGION and, to measure,
 * LOCK_POOLS; the caller holds no lock. */
#ifndef VGPU_CHARGE_RECONCILE_REAPING_H
#define VGPU_CHARGE_RECONCILE_REAPING_H

#include <stdbool.h>

#include "region/region.h"

/* Clears the charges of dead processes, and returns how many there were. The calling thread has `own_calls` calls open
 * (see reconcile.h). If there is a dead process, all cards are reconciled first, so that memory which it shared is
 * charged to the process that still has it. Where that fails, the region's rows of exports say which memory that is; if
 * some of it has no row, dead processes keep their charges until NVML answers. */
unsigned reaping_now(struct region *region, unsigned own_calls);

/* `reaping_now` for the view, with no call open, at most every 100 ms. Returns whether it was due. */
bool reaping_if_due(struct region *region);

#endif
