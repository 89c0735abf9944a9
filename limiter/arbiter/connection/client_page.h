/* A client's page (arbitration.h): shared memory that the arbiter writes and the client can only read. */
#ifndef VGPU_ARBITER_CONNECTION_CLIENT_PAGE_H
#define VGPU_ARBITER_CONNECTION_CLIENT_PAGE_H

#include "common/arbitration.h"

/* Creates a page. `*fd` is a read-only descriptor of it for the client, which the caller closes. NULL, with `*fd` -1,
 * if memory or descriptors are out. */
struct arbitration_page *client_page_create(int *fd);

/* Unmaps the page; the client keeps its own mapping. */
void client_page_close(struct arbitration_page *page);

/* Writes all fields of `content` but the heartbeat, and wakes the client if a field that it may wait for has changed.
 */
void client_page_publish(struct arbitration_page *page, const struct arbitration_page *content);

/* Writes the heartbeat: `now` is CLOCK_MONOTONIC in ns. */
void client_page_write_heartbeat(struct arbitration_page *page, uint64_t now);

#endif
