/* All containers: the directories below the one that is watched. */
#ifndef VGPU_ARBITER_CONTAINERS_H
#define VGPU_ARBITER_CONTAINERS_H

#include <stdbool.h>
#include <stdint.h>

/* Begins to watch; false where the directory cannot be read. */
bool containers_open(const char *path);

/* After events: looks again what is there, where something has changed. */
void containers_rescan_if_changed(void);

/* Twice a second: the limits, and doors that could not be made so far. */
void containers_refresh(uint64_t now);

/* How many there are. */
unsigned containers_count(void);

/* Takes the sockets away. */
void containers_close(void);

#endif
