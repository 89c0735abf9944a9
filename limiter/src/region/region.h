/* Maps a region's file, and locks the region. */
#ifndef VGPU_REGION_REGION_H
#define VGPU_REGION_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include "common/region_layout.h"

/* Maps the file at `path`; NULL where it cannot be opened or is not a region of this version. The file is never created
 * or truncated. May wait up to 100 ms for another process that initialises the region's lock. */
struct region *region_open(const char *path);

/* Maps a new region in anonymous memory, shared with forked children only; NULL where memory is exhausted. */
struct region *region_anonymous(void);

/* Unmaps the region. */
void region_close(struct region *region);

/* The usual timeout of region_lock in ms. The lock is held for arithmetic only, so a holder that keeps it longer is
 * stopped (SIGSTOP, freezer, CPU quota). */
enum { REGION_LOCK_MS = 50 };

/* Takes the region's lock (LOCK_REGION) and waits up to `timeout_ms` for it. Returns 0 or a negative errno; -ETIMEDOUT
 * means that the holder is stopped: the caller then refuses a reservation and defers a release
 * (charge/release/release.h). Where the holder has died, the sums are recomputed from the slots before the function
 * returns 0. */
int region_lock(struct region *region, unsigned timeout_ms);

void region_unlock(struct region *region);

/* Takes the region's lock; NULL where it cannot be taken, or `region` is NULL. The variable that the result is stored
 * in is declared HELD_REGION, so that the lock is released at the end of the enclosing block, by whichever way that is
 * left:
 *
 *     HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
 */
#define HELD_REGION __attribute__((cleanup(region_drop)))

static inline struct region *region_hold(struct region *region, unsigned timeout_ms) {
    return region && region_lock(region, timeout_ms) == 0 ? region : NULL;
}

static inline void region_drop(struct region **locked) {
    if (*locked) region_unlock(*locked);
}

#endif
