/* A client's page: memory that we write and it can only read. */
#ifndef VGPU_PAGE_H
#define VGPU_PAGE_H

#include "common/arbitration.h"

/* Makes one; `*fd` is a descriptor of it to be given to the client, for the caller to close. NULL where there is no
 * memory or no descriptor left. */
struct arbitration_page *page_make(int *fd);

void page_close(struct arbitration_page *page);

/* Shows all but the beat, and wakes the client where it may be waiting for it. */
void page_show(struct arbitration_page *page, const struct arbitration_page *shown);

void page_beat(struct arbitration_page *page, uint64_t now);

#endif
