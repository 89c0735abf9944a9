/* The limits file, which changes while we run: rewritten in place, as the device plugin does (its mount would not show
 * another file), or replaced by another of its name. Not locked: its user locks.
 *
 * It is mapped, so whoever rewrites it must never truncate it: before the path is looked at again, which is within
 * 10 ms, the kernel kills by SIGBUS who reads it. */
#ifndef VGPU_CONTAINER_LIMITS_FILE_H
#define VGPU_CONTAINER_LIMITS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/limits.h"

struct limits_file_watch {
    const char *path; /* NULL: nothing is watched */
    const struct limits_file *file;
    dev_t device;
    ino_t inode;
    uint64_t due; /* when the path is looked at again, in ticks */
};

/* Reads the file for the first time; false where it cannot be read: then it is looked for again from time to time. */
bool limits_file_open(struct limits_file_watch *watched, const char *path, struct limits_slot *limits);

/* Brings the copy up to date (`now` is in ticks): at once with what is written in place, within 10 ms with a file in
 * the former one's place. What cannot be read, or is there no more, leaves the last good copy. */
void limits_file_update(struct limits_file_watch *watched, struct limits_slot *limits, uint64_t now);

#endif
