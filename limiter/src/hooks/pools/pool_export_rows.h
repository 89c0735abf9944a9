/* This process's rows of shared pools (shares.h). */
#ifndef VGPU_HOOKS_POOLS_POOL_EXPORT_ROWS_H
#define VGPU_HOOKS_POOLS_POOL_EXPORT_ROWS_H

#include "driver/abi.h"
#include "region/pool_exports.h"

/* Where a pool's pointer lies, and how many steps of the pool's growth that touches. They lie at multiples of their
 * size. */
struct extent {
    uint64_t base;
    uint64_t size;
    uint64_t first_step; /* of the steps */
    uint64_t step_count;
};

/* False where the driver does not know it. */
bool pool_export_rows_extent(CUdeviceptr pointer, struct extent *extent);

/* What tells a pointer everywhere: the driver gives the same data each time. */
uint64_t pool_export_rows_key(const CUmemPoolPtrExportData *data);

/* What tells the memory that it lies in: pointers of one pool in the same steps hold the same. */
uint64_t pool_export_rows_group(uint64_t pool, const struct extent *extent);

/* Adds a row of this process's, and takes back what was charged ahead of it. False where there is no room for it. */
bool pool_export_rows_add(struct region_pool_export *row, uint64_t reserved_ahead);

/* Makes an importer's row of a pointer that the region knows already. */
enum join_result { JOIN_ADDED, JOIN_UNKNOWN, JOIN_LOCKED };
enum join_result pool_export_rows_join(struct region_pool_export *row);

#endif
