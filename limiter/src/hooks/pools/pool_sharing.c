/* Pools that others may open, and their pointers, told by value. The memory stays charged here while the pool keeps it
 * (exported.h), while a descriptor does after that (references.h), and in between to who else has it (shares.h). */
#include "books/current_pools.h"
#include "books/exports.h"
#include "books/imports.h"
#include "books/physical_memory.h"
#include "books/pool_ids.h"
#include "books/pools.h"
#include "charge/charge.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "hooks/pools/pool_charge.h"
#include "hooks/pools/pool_export_rows.h"
#include "region/account.h"

EXPORT CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type,
                                                 unsigned long long flags) {
    CUresult result = REAL(cuMemPoolExportToShareableHandle)(handle, pool, type, flags);
    bool is_descriptor = result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (is_descriptor && container_is_limited())
        physical_memory_export_pool(pool_ids_get((uint64_t)pool).number, *(int *)handle);
    return result;
}

/* Where there is no room for it, who imports the pointer is charged at once. */
static void add_exporter_row(const struct pool *pool, uint64_t number, uint64_t key, const struct extent *extent) {
    struct region_pool_export row = {.key = key,
                                     .group = pool_export_rows_group(number, extent),
                                     .bytes = extent->step_count * POOL_STEP,
                                     .pool = number,
                                     .card = (uint32_t)pool->card,
                                     .kind = POOL_EXPORTER};
    pool_export_rows_add(&row, 0);
}

/* What was kept at its place is no longer; what was given back before is seen first. */
static void track_export(struct pool *pool, uint64_t number, const struct extent *extent) {
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

static void record_export(const CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
    struct extent extent;
    struct pool *pool = pool_of(pointer);
    if (!pool || !pool->is_counted || pool->card < 0 || !pool_export_rows_extent(pointer, &extent)) return;
    uint64_t number = pool_ids_get((uint64_t)pool->handle).number;
    if (number == 0) return;
    add_exporter_row(pool, number, pool_export_rows_key(data), &extent);
    track_export(pool, number, &extent);
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
    CUresult result = REAL(cuMemPoolExportPointer)(data, pointer);
    if (result == CUDA_SUCCESS && container_is_limited()) record_export(data, pointer);
    return result;
}

/* Imports: pointers of other processes' pools. The memory is charged to its maker as long as his row says so, then to
 * the card, by the rows of who imported it (shares.h). An importer's own pool is asked in vain what it has reserved,
 * and gives back nothing before it is destroyed (measured on an H200, driver 580). */
static bool find_card(CUdeviceptr pointer, uint8_t uuid[UUID_SIZE]) {
    CUdevice device;
    return REAL(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == CUDA_SUCCESS &&
           cards_of_device(device, uuid);
}

/* There is no room for the row: what is charged stays this process's own until its pool ends. */
static void charge_until_pool_ends(CUmemoryPool pool, const struct reservation *reservation, bool is_charged) {
    if (!is_charged) charge_unconditionally(reservation->card, reservation->bytes);
    charge_mark_managed(reservation->card, reservation->bytes);
    pool_ids_charge((uint64_t)pool, reservation->card, reservation->bytes);
}

/* Memory that nobody in the container is charged for: its maker is gone, or in another one. How large it is can be
 * asked only now. */
static bool charge_unclaimed(struct region_pool_export *row, CUmemoryPool pool, CUdeviceptr pointer) {
    uint8_t uuid[UUID_SIZE];
    struct extent extent;
    struct reservation reservation;
    if (!find_card(pointer, uuid) || !pool_export_rows_extent(pointer, &extent)) return false;
    row->group = row->key;
    row->bytes = extent.step_count * POOL_STEP;
    bool fits = charge_reserve("cuMemPoolImportPointer", uuid, row->bytes, &reservation);
    row->card = (uint32_t)reservation.card;
    if (!pool_export_rows_add(row, fits ? row->bytes : 0)) charge_until_pool_ends(pool, &reservation, fits);
    return fits;
}

/* The row comes before the driver's call, so that the memory is charged should its maker end meanwhile. Where the call
 * fails, it stays until the pool ends: too much is charged then, if the maker ends before. */
static CUresult import(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    struct region_pool_export row = {.key = pool_export_rows_key(data), .kind = POOL_IMPORTER};
    row.pool = pool_ids_get((uint64_t)pool).number;
    enum join_result joined = row.pool ? pool_export_rows_join(&row) : JOIN_LOCKED;
    if (joined == JOIN_LOCKED) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemPoolImportPointer)(pointer, pool, data);
    if (result != CUDA_SUCCESS) return result;
    imports_add(row.pool, *pointer);
    if (joined == JOIN_ADDED || charge_unclaimed(&row, pool, *pointer)) return CUDA_SUCCESS;
    imports_free(*pointer);
    REAL(cuMemFree_v2)(*pointer);
    *pointer = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is refused stays on the card, and charged, until the pool ends, for its memory cannot be given back alone. */
EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    if (!pointer || !pool || !data || !container_is_limited()) return REAL(cuMemPoolImportPointer)(pointer, pool, data);
    int call_slot = charge_begin_call();
    CUresult result = import(pointer, pool, data);
    charge_end_call(call_slot);
    return result;
}
