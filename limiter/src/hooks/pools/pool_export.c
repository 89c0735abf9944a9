/* Pools that others may open, and their pointers, told by value. The memory stays charged here while the pool keeps it
 * (exported.h), while a descriptor does after that (references.h), and in between to who else has it (shares.h). */
#include "books/physical_memory.h"
#include "books/pool_ids.h"
#include "charge/charge.h"
#include "driver/function_table.h"
#include "hooks/pools/pool_charge.h"
#include "hooks/pools/pool_export_rows.h"

EXPORT CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type,
                                                 unsigned long long flags) {
    CUresult result = REAL(cuMemPoolExportToShareableHandle)(handle, pool, type, flags);
    bool is_descriptor = result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (is_descriptor && charge_is_limited())
        physical_memory_export_pool(pool_ids_get((uint64_t)pool).number, *(int *)handle);
    return result;
}

/* Where there is no room for it, who imports the pointer is charged at once. */
static void add_row(const struct pool *pool, uint64_t number, uint64_t key, const struct extent *extent) {
    struct region_pool_export row = {.key = key,
                                     .group = pool_export_rows_group(number, extent),
                                     .bytes = extent->steps * POOL_STEP,
                                     .pool = number,
                                     .card = (uint32_t)pool->card,
                                     .kind = POOL_EXPORTER};
    pool_export_rows_add(&row, 0);
}

/* What was kept at its place is no longer; what was given back before is seen first. */
static void keep_track(struct pool *pool, uint64_t number, const struct extent *extent) {
    pools_lock();
    __atomic_store_n(&pool->number, number, __ATOMIC_RELAXED);
    pools_read_reserved(pool);
    pools_unlock();
    exports_add(number, extent->base, extent->size);
    pool_charge_check(pool);
}

static struct pool *pool_of(CUdeviceptr pointer) {
    CUmemoryPool handle = NULL;
    REAL(cuPointerGetAttribute)((void *)&handle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer);
    return current_pools_find(handle);
}

static void made(const CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
    struct extent extent;
    struct pool *pool = pool_of(pointer);
    if (!pool || !pool->is_counted || pool->card < 0 || !pool_export_rows_extent(pointer, &extent)) return;
    uint64_t number = pool_ids_get((uint64_t)pool->handle).number;
    if (number == 0) return;
    add_row(pool, number, pool_export_rows_key(data), &extent);
    keep_track(pool, number, &extent);
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
    CUresult result = REAL(cuMemPoolExportPointer)(data, pointer);
    if (result == CUDA_SUCCESS && charge_is_limited()) made(data, pointer);
    return result;
}
