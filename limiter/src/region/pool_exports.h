/* Rows of the region: which pointers into memory pools this container's processes have exported and imported.
 *
 * Exported pool memory stays on the card while any process's pool has it, but NVML counts it for its exporter only, as
 * a part of what the exporter's pool has reserved. Memory that an importer has a row for, and no living exporter, is
 * orphaned: it is charged to the card itself, once for each group of pointers.
 *
 * Pure. The caller holds the region's lock (LOCK_REGION). */
#ifndef VGPU_REGION_POOL_EXPORTS_H
#define VGPU_REGION_POOL_EXPORTS_H

#include <stdbool.h>

#include "common/region_layout.h"

/* A pool number that stands for all pools of a process. */
#define EVERY_POOL 0

/* Copies a row with this key, of any process, into `found`. False where there is none; `found` is then undefined. */
bool pool_exports_find(const struct region *region, uint64_t key, struct region_pool_export *found);

/* Adds a row, unless the pool has a row with this key and role already. False where the table is full. */
bool pool_exports_add(struct region *region, const struct region_pool_export *row);

/* Removes the rows of a process's pool; true where there were any. */
bool pool_exports_end(struct region *region, int slot, uint64_t pool);

/* Bytes of orphaned memory on a card. */
uint64_t pool_exports_orphaned_bytes(const struct region *region, int card);

/* Bytes on a card that a process has exported. */
uint64_t pool_exports_exported_bytes(const struct region *region, int slot, int card);

#endif
