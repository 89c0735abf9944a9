/* The ends of the container's processes, as far as nobody was told of them. */
#ifndef VGPU_CHARGE_REAPING_H
#define VGPU_CHARGE_REAPING_H

#include <stdbool.h>

#include "region/region.h"

/* Takes the charges of the dead off; the caller has `own` spans (charge.h) open. How many they were. What they had
 * shared may live on with another process: it is charged there before. */
unsigned reaping_now(struct region *region, unsigned own_calls);

/* The same for the view, at most every 100 ms; whether that was due. */
bool reaping_if_due(struct region *region);

#endif
