/* Identity of processes, and whether another process of the container still lives. Reads /proc. */
#ifndef VGPU_REGION_IDENTITY_H
#define VGPU_REGION_IDENTITY_H

#include "region/region.h"

/* Identity of the calling process. Fields that come from /proc are 0 where it is not mounted. */
struct identity identity_self(void);

/* Whether `other` has certainly ended: its pid does not exist, belongs to a process that started at another time, or is
 * a zombie's. A process in another pid namespace than `self` counts as alive, because its pid means nothing here. */
bool identity_is_dead(const struct identity *other, const struct identity *self);

/* Whether a dead process holds a slot. Needs no lock. */
bool identity_any_dead(const struct region *region, const struct identity *self);

/* Clears the slots of dead processes and returns their number. Reads /proc without the region's lock and takes it for
 * each slot to be cleared, for which it waits up to `timeout_ms`; the caller must not hold it. */
unsigned identity_reap(struct region *region, const struct identity *self, unsigned timeout_ms);

#endif
