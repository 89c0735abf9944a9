/* A lock on a region's file for each slot, which tells whether the slot's process still lives. Byte n of the file
 * stands for slot n; the owner holds an open file description lock (F_OFD_SETLK) on it. The kernel releases the lock
 * when the process ends or executes another program. Unlike a pid, a lock means the same in every pid namespace.
 *
 * A forked child closes its copy of the descriptor, for a lock lasts until the last copy is closed. The locks do not
 * keep any process from reading or writing the file. */
#ifndef VGPU_REGION_SLOT_LOCKS_H
#define VGPU_REGION_SLOT_LOCKS_H

#include <stdbool.h>

/* Names the region's file, of which this process has mapped the present one. Called once; the path is copied. */
void slot_locks_use(const char *path);

/* Opens the descriptor, so that the functions below need not. */
void slot_locks_open(void);

/* Locks a slot's byte until this process ends; false where the region has no file, the kernel no such locks, or another
 * process holds the lock. Does not wait. */
bool slot_locks_take(int slot);

/* Whether no other process holds a slot's lock; false where that is unknown. A lock of this process does not count. */
bool slot_locks_is_free(int slot);

#endif
