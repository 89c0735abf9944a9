/* Rows of the region: which pointers of pools are exported to other processes, and which are imported. The memory stays
 * on the card while anybody's pool has it, but NVML counts it with its maker alone, by what the pool has reserved. So
 * what no living maker's row stands for any more, and an importer's does, is orphaned: charged to the card by itself,
 * once for each group. Pure; whoever calls a function that writes holds the region's lock.
 */
#ifndef VGPU_REGION_POOL_EXPORTS_H
#define VGPU_REGION_POOL_EXPORTS_H

#include <stdbool.h>

#include "common/region_layout.h"

/* Of a process: all of them. */
#define EVERY_POOL 0

/* A row of that pointer, anybody's; false where there is none. */
bool pool_exports_find(const struct region *region, uint64_t key, struct region_pool_export *found);

/* Adds a row, unless the same pool has one of that pointer. False where the table is full. */
bool pool_exports_add(struct region *region, const struct region_pool_export *row);

/* Ends the rows of a process's pool; whether there were any. */
bool pool_exports_end(struct region *region, int slot, uint64_t pool);

/* Orphaned bytes of a card; and those that a process's makers' rows stand for. */
uint64_t pool_exports_orphaned_bytes(const struct region *region, int card);
uint64_t pool_exports_exported_bytes(const struct region *region, int slot, int card);

#endif
