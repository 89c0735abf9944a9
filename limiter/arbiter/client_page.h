/* A client's page: memory that we write and it can only read. */
#ifndef VGPU_ARBITER_CLIENT_PAGE_H
#define VGPU_ARBITER_CLIENT_PAGE_H

#include "common/arbitration.h"

/* Makes one; `*fd` is a descriptor of it to be given to the client, for the caller to close. NULL where there is no
 * memory or no descriptor left. */
struct arbitration_page *client_page_create(int *fd);

void client_page_close(struct arbitration_page *page);

/* Shows all but the beat, and wakes the client where it may be waiting for it. */
void client_page_publish(struct arbitration_page *page, const struct arbitration_page *content);

void client_page_write_heartbeat(struct arbitration_page *page, uint64_t now);

#endif
