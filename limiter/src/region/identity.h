/* Identity of processes, and whether another process of the container still lives. Reads /proc. */
#ifndef VGPU_REGION_IDENTITY_H
#define VGPU_REGION_IDENTITY_H

#include "region/region.h"

/* Identity of the calling process. Without /proc it differs from call to call. */
struct identity identity_self(void);

/* A number of the program that this process runs: exec() changes it, fork() does not. Never 0. */
uint32_t identity_image(void);

/* Whether `other` has certainly ended: its pid does not exist, belongs to a process that started at another time, or is
 * a zombie's. False where a pid cannot tell: `other` may be in another pid namespace than `self`, where its pid means
 * nothing, or /proc may be missing or show another namespace's processes. */
bool identity_is_dead(const struct identity *other, const struct identity *self);

/* Whether a dead process holds a slot. Where the pid cannot tell, the slot's file lock does (region/slot_locks.h).
 * Needs no lock. */
bool identity_any_dead(const struct region *region, const struct identity *self);

/* How many processes hold slots, without those that are known to be dead. Needs no lock. */
unsigned identity_count_living(const struct region *region, const struct identity *self);

/* Clears the slots of dead processes and returns their number. Reads /proc without the region's lock and takes it for
 * each slot to be cleared, for which it waits up to `timeout_ms`; the caller must not hold it. */
unsigned identity_reap(struct region *region, const struct identity *self, unsigned timeout_ms);

#endif
