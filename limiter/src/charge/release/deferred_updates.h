/* Updates of this process's charge that wait for LOCK_REGION, as sums by card. Any thread adds an update; the next
 * thread of this process that holds the lock applies all, each once. */
#ifndef VGPU_CHARGE_RELEASE_DEFERRED_UPDATES_H
#define VGPU_CHARGE_RELEASE_DEFERRED_UPDATES_H

#include <stdint.h>

#include "region/region.h"

/* In the order of applying: charges come first, so that a sum that waits is never taken off twice. */
enum update { UPDATE_CHARGE, UPDATE_MARK_MANAGED, UPDATE_RELEASE, UPDATE_UNMARK_MANAGED, UPDATES };

/* Adds an update of `bytes` on a card (the region's row; an invalid one does nothing), and does not wait. */
void deferred_updates_add(enum update update, int card, uint64_t bytes);

/* Applies all updates. `slot` is this process's. The caller holds LOCK_REGION. */
void deferred_updates_apply(struct region *region, int slot);

#endif
