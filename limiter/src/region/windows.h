/* The container's recent share of a card's time, over consecutive windows of 1 s and of 10 s. A window is closed by the
 * first charge after its length. Pure: the clock is an argument. */
#ifndef VGPU_REGION_WINDOWS_H
#define VGPU_REGION_WINDOWS_H

#include <stdbool.h>

#include "common/region_layout.h"

/* Closes the windows that are complete at `now` (CLOCK_MONOTONIC in ns), after a charge. The caller holds the region's
 * lock (LOCK_REGION). A window that is long over stays as it is until the next charge, so readers compare its end with
 * the present time (`recent_share` in vgpu/domain/formats/region.py). */
void windows_update(struct region_card *card, uint64_t now);

#endif
