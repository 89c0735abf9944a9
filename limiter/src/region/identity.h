/* Who this process is, and whether another one still lives. Reads /proc. */
#ifndef VGPU_REGION_IDENTITY_H
#define VGPU_REGION_IDENTITY_H

#include "region/region.h"

/* This process. Where /proc is not mounted, the fields that come from there are 0. */
struct identity identity_self(void);

/* Whether `other` has surely ended: its pid is gone, was given to another process, or stands for a zombie. A process of
 * another pid namespace than `self` is taken to live, for its pid means nothing here. */
bool identity_is_dead(const struct identity *other, const struct identity *self);

/* Whether any slot is a dead process's. */
bool identity_any_dead(const struct region *region, const struct identity *self);

/* Clears the slots of the dead: looks without the lock, takes it only to clear. Returns how many were cleared. */
unsigned identity_reap(struct region *region, const struct identity *self, unsigned timeout_ms);

#endif
