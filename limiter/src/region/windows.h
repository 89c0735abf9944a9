/* The share of a card's time that a container had lately, in the region: over windows that follow one another, each
 * closed by the first charge after its time is up. Pure: the clock is an argument. Under the region's lock. */
#ifndef VGPU_REGION_WINDOWS_H
#define VGPU_REGION_WINDOWS_H

#include <stdbool.h>

#include "common/region_layout.h"

/* After a charge at `now`. Who reads the windows judges how old they are (vgpu/region.py). */
void windows_update(struct region_card *card, uint64_t now);

#endif
