/* A region, mapped: opened, and locked by its robust mutex. */
#ifndef VGPU_REGION_REGION_H
#define VGPU_REGION_REGION_H

#include <stdbool.h>

#include "common/region_layout.h"

/* Maps the file at `path`; NULL where it cannot be opened or is no region. Never creates, never truncates. */
struct region *region_open(const char *path);

/* Maps a fresh region that only this process and its forks share; NULL when memory is out. */
struct region *region_anonymous(void);

void region_close(struct region *region);

/* How long a caller waits for a holder of the lock that is stopped. */
enum { REGION_LOCK_MS = 50 };

/* Takes the lock within `timeout_ms`; 0, or a negative errno. -ETIMEDOUT: the holder is stopped, not dead; a
 * reservation is then refused and a release put off (see charge.c). After a holder's death the sums are made again from
 * the slots. */
int region_lock(struct region *region, unsigned timeout_ms);

void region_unlock(struct region *region);

#endif
