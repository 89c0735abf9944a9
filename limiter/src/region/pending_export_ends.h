/* Queue of exports and imports that have ended, whose rows (region/pool_exports.h, region/memory_exports.h) and charges
 * are taken back later, together, by the next thread of this process that holds the region's lock. */
#ifndef VGPU_REGION_PENDING_EXPORT_ENDS_H
#define VGPU_REGION_PENDING_EXPORT_ENDS_H

#include <stdint.h>

#include <stdbool.h>

#include "common/region_layout.h"

enum export_end_kind { END_OF_POOL, END_OF_EXPORT, END_OF_IMPORT };

/* What is taken back for a destroyed pool, for freed memory that was exported, or for a reference to imported memory.
 * Where descriptors still hold `kept` bytes of a pool, those are charged instead, marked as managed, and the export
 * rows stay until a second entry of that pool. */
struct pending_export_end {
    uint64_t shared;  /* the library's number for the pool (books/pools/pool_ids.h), or the memory's group */
    int card;         /* the region's row */
    uint64_t bytes;   /* charge to be taken back */
    uint64_t managed; /* part of `bytes` that is marked as managed */
    uint64_t kept;    /* bytes that stay charged */
    enum export_end_kind kind;
};

/* Adds an entry. False where malloc fails: rows and charge then stay until the process ends. Takes
 * LOCK_EXPORT_ENDS. */
bool pending_export_ends_add(struct pending_export_end end);

/* Applies and removes all entries. The caller holds the region's lock; takes LOCK_EXPORT_ENDS. */
void pending_export_ends_apply(struct region *region, int slot);

#endif
