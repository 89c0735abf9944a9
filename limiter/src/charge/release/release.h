/* Takes charges back, and changes charges without comparing them with a limit. No change is lost: if LOCK_REGION cannot
 * be had within REGION_LOCK_MS, it is deferred until this process next holds the lock. */
#ifndef VGPU_CHARGE_RELEASE_RELEASE_H
#define VGPU_CHARGE_RELEASE_RELEASE_H

#include <stdint.h>

#include "charge/release/deferred_updates.h"
#include "region/pending_export_ends.h"
#include "region/region.h"

/* Makes an update of `bytes` on a card (the region's row; -1 does nothing). The caller holds no lock. */
void release_update(enum update update, int card, uint64_t bytes);

/* Releases `bytes` charged to this process on a card (the region's row; -1 does nothing). The caller holds no lock. */
void release_charge(int card, uint64_t bytes);

/* Releases `bytes` that are marked as managed memory, with the mark. The caller holds no lock. */
void release_managed(int card, uint64_t bytes);

/* Releases the charge of memory that was shared and ends its rows in the region at the same moment, so that memory
 * which others still have is always charged (region/pool_exports.h, region/memory_exports.h). The caller holds no lock.
 */
void release_shared(struct pending_export_end end);

/* Applies deferred releases. `slot` is this process's. The caller holds LOCK_REGION. */
void release_apply_deferred(struct region *region, int slot);

#endif
