/* Rows of the region: which memory this container's processes have exported and imported, apart from pools
 * (pool_exports.h): by IPC handles and by file descriptors.
 *
 * Exported memory stays on the card while any process holds it. It is charged to its exporter. After the exporter's end
 * NVML counts it for one of its importers, but NVML may fail. So memory that importers have rows for, and no living
 * exporter, is orphaned: it is charged to the card itself, once for each group, until NVML's figure for every importer
 * of the group has been charged since its holders last changed. One of these figures contains the memory then.
 *
 * Sums are computed from the rows, so that a process that is killed while it holds the lock leaves them right. The
 * table never holds more than REGION_MEMORY_EXPORTS rows; where memory has no row, `is_incomplete` says so, and what
 * was exported stays charged to its exporter until NVML answers (charge/reconcile/reaping.h).
 *
 * Pure. The caller holds the region's lock (LOCK_REGION), except where a function says that it needs no lock. */
#ifndef VGPU_REGION_MEMORY_EXPORTS_H
#define VGPU_REGION_MEMORY_EXPORTS_H

#include <stdbool.h>

#include "common/region_layout.h"

/* Stand for no slot, for all roles and for all groups. */
enum { NO_SLOT = -1, EVERY_ROLE = MEMORY_EXPORT_FREE, EVERY_GROUP = 0 };

/* Whether the table has rows. */
bool memory_exports_any(const struct region *region);

/* Copies a row with this key, of any process, into `found`. False where there is none; `found` is then undefined. */
bool memory_exports_find(const struct region *region, uint64_t key, struct region_memory_export *found);

/* Whether a living process of the container exports the group. */
bool memory_exports_has_exporter(const struct region *region, uint64_t group);

/* Adds a row. An importer that has a row of that group gets one reference more instead, and an exporter with a row of
 * that key keeps it. False where the table is full. */
bool memory_exports_add(struct region *region, const struct region_memory_export *row);

/* Takes a reference of an importer away, and its row with the last one; true where a row has ended. */
bool memory_exports_drop(struct region *region, int slot, uint64_t group);

/* Removes a process's rows of a role and group; true where there were any. */
bool memory_exports_end(struct region *region, int slot, uint32_t role, uint64_t group);

/* Notes that NVML's figure for a process on a card is charged. */
void memory_exports_measure(struct region *region, int slot, int card);

/* Bytes of orphaned memory on a card. The process `measured`, or NO_SLOT, counts as measured. */
uint64_t memory_exports_orphaned_bytes(const struct region *region, int card, int measured);

/* Bytes on a card that a process has exported and others have imported. */
uint64_t memory_exports_shared_bytes(const struct region *region, int slot, int card);

/* Notes, and tells, that memory was exported or imported which has no row. Needs no lock. */
void memory_exports_note_incomplete(struct region *region);
bool memory_exports_is_incomplete(const struct region *region);

#endif
