/* All containers: one for each directory below the directory that the arbiter serves. */
#ifndef VGPU_ARBITER_CONTAINER_CONTAINERS_H
#define VGPU_ARBITER_CONTAINER_CONTAINERS_H

#include <stdbool.h>
#include <stdint.h>

/* Begins to watch the directory at `path`; false, with errno, if it cannot be opened. */
bool containers_open(const char *path);

/* Called after events: scans the directory again if something in it has changed. */
void containers_rescan_if_changed(void);

/* Called twice a second: scans the directory, reads every limits file, creates sockets that are missing, and allows
 * more connections. */
void containers_refresh(uint64_t now);

/* The number of containers. */
unsigned containers_count(void);

/* Closes all containers and removes their sockets. */
void containers_close(void);

#endif
