/* Adds this process's rows to the region's table of exported and imported pool pointers (region/pool_exports.h). The
 * caller holds no lock. */
#ifndef VGPU_HOOKS_POOLS_POOL_EXPORT_ROWS_H
#define VGPU_HOOKS_POOLS_POOL_EXPORT_ROWS_H

#include "driver/abi.h"
#include "region/pool_exports.h"

/* Where a pool's allocation lies, and which of its pool's steps (POOL_STEP bytes, at multiples of POOL_STEP) it
 * touches. */
struct extent {
    uint64_t base;       /* device address */
    uint64_t size;       /* bytes */
    uint64_t first_step; /* address of the first step, divided by POOL_STEP */
    uint64_t step_count;
};

/* The extent of the allocation that `pointer` lies in; false if the driver does not know it. */
bool pool_export_rows_extent(CUdeviceptr pointer, struct extent *extent);

/* A number that identifies an exported pointer in every process: a hash of its export data, which the driver makes the
 * same each time. */
uint64_t pool_export_rows_key(const CUmemPoolPtrExportData *data);

/* A number that identifies the memory of an extent: exports of one pool in the same steps keep the same memory. */
uint64_t pool_export_rows_group(uint64_t pool, const struct extent *extent);

/* Adds a row for this process and, in the same hold of LOCK_REGION, releases `reserved_ahead` bytes that were charged
 * for it. False if the lock, a slot or room in the table cannot be had: nothing has changed. */
bool pool_export_rows_add(struct region_pool_export *row, uint64_t reserved_ahead);

enum join_result {
    JOIN_ADDED,
    JOIN_UNKNOWN, /* the table has no row of that pointer, or no room for another */
    JOIN_LOCKED,  /* the lock cannot be had, or there is no region */
};

/* Adds an importer's row for a pointer that has a row already, and takes the memory's group, size and card from
 * there. */
enum join_result pool_export_rows_join(struct region_pool_export *row);

#endif
