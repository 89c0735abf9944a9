/* Follows a limits file that changes while the process runs. The device plugin rewrites the file in place, because a
 * bind-mounted file cannot be replaced; elsewhere it may be replaced by another file of that name. Both are noticed.
 *
 * The file is mapped, so a writer must never truncate it: a process that reads the missing part before its next check
 * of the path, which is within 17 ms, is killed by SIGBUS.
 *
 * Not locked: the caller serialises the calls (container.c does, by LOCK_CONTAINER). */
#ifndef VGPU_CONTAINER_LIMITS_FILE_H
#define VGPU_CONTAINER_LIMITS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/limits.h"

struct limits_file_watch {
    const char *path;               /* NULL: no file is watched */
    const struct limits_file *file; /* the mapping; NULL: there is no file of a sufficient size */
    dev_t device;                   /* of the mapped file */
    ino_t inode;                    /* of the mapped file */
    uint64_t due;                   /* when the path is checked again, in clock_ticks() */
};

/* Begins to watch `path`, of which it keeps a copy, and reads the limits. False where the file is missing or not valid:
 * limits_file_update reads it once it is. */
bool limits_file_open(struct limits_file_watch *watch, const char *path, struct limits_slot *limits);

/* Updates `limits` if the file has changed; `now` is clock_ticks(). A rewrite in place takes effect at once, another
 * file at the path within 17 ms. Where the file is missing or not valid, `limits` keeps the last valid content. */
void limits_file_update(struct limits_file_watch *watch, struct limits_slot *limits, uint64_t now);

#endif
