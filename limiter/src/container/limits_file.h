/* Follows a limits file that changes while the process runs. The device plugin rewrites the file in place, because a
 * bind-mounted file cannot be replaced; elsewhere it may be replaced by another file of that name. Both are noticed.
 *
 * The content is read from the file, and never from a mapping, which raises SIGBUS once its file is truncated. The file
 * is mapped without access all the same: by that mapping the node sees from outside that a process follows these limits
 * (vgpu/node/processes/unlimited.py).
 *
 * Not locked: the caller serialises the calls (container.c does, by LOCK_CONTAINER). */
#ifndef VGPU_CONTAINER_LIMITS_FILE_H
#define VGPU_CONTAINER_LIMITS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/limits.h"

struct limits_file_watch {
    const char *path;           /* NULL: no file is watched */
    struct limits_file content; /* as last read, valid or not */
    struct stat seen;           /* of the file at the last check */
    struct stat read;           /* of the file that the limits are from */
    void *mapping;              /* of the file that the limits are from; NULL: no valid limits were read */
    unsigned reads_left;        /* checks that read the file although it looks unchanged */
    uint64_t due;               /* when the path is checked again, in clock_ticks() */
};

/* Begins to watch `path`, of which it keeps a copy, and reads the limits. False where the file is missing or not valid:
 * limits_file_update reads it once it is. */
bool limits_file_open(struct limits_file_watch *watch, const char *path, struct limits_slot *limits);

/* Updates `limits` if the file has changed. Where it is missing or not valid, `limits` keeps the last valid content. */
void limits_file_look(struct limits_file_watch *watch, struct limits_slot *limits);
/* The same, if the last check was 17 ms ago or longer; `now` is clock_ticks(). */
void limits_file_update(struct limits_file_watch *watch, struct limits_slot *limits, uint64_t now);

#endif
