/* Exports and imports of pools, and of single pointers of pools (CUmemPoolPtrExportData).
 *
 * Exported memory is charged to its exporter while the pool keeps it (books/pools/exports.h), and after the pool's end
 * while a descriptor holds it (books/physical/references.h). After that it is charged to the card, once for all
 * processes that imported it (region/pool_exports.h). An importer's own pool does not report imported memory as
 * reserved, and gives none back before it is destroyed (measured on an H200, driver 580). */
#include "books/physical/physical_memory.h"
#include "books/pools/current_pools.h"
#include "books/pools/exports.h"
#include "books/pools/imports.h"
#include "books/pools/pool_ids.h"
#include "books/pools/pools.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "hooks/pools/pool_charge.h"
#include "hooks/pools/pool_export_rows.h"
#include "process/lock.h"
#include "region/account.h"

EXPORT CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type,
                                                 unsigned long long flags) {
    CUresult result = REAL(cuMemPoolExportToShareableHandle)(handle, pool, type, flags);
    bool is_descriptor = result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (is_descriptor && container_is_limited())
        physical_memory_export_pool(pool_ids_get((uint64_t)pool).id, *(int *)handle);
    return result;
}

/* If the table is full, a process that imports the pointer finds no row, and is charged at once. */
static void add_exporter_row(const struct pool *pool, uint64_t number, uint64_t key, const struct extent *extent) {
    struct region_pool_export row = {.key = key,
                                     .group = pool_export_rows_group(number, extent),
                                     .bytes = extent->step_count * POOL_STEP,
                                     .pool = number,
                                     .card = (uint32_t)pool->card,
                                     .role = POOL_EXPORTER};
    pool_export_rows_add(&row, 0);
}

static void note_id(struct pool *pool, uint64_t number) {
    HOLD_LOCK(LOCK_POOLS);
    __atomic_store_n(&pool->id, number, __ATOMIC_RELAXED);
    pools_read_reserved(pool);
}

/* The export replaces lost memory at its addresses. What the pool gave back before must be counted first, so the pool
 * is read before the export is added. */
static void track_export(struct pool *pool, uint64_t number, const struct extent *extent) {
    note_id(pool, number);
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
    uint64_t number = pool_ids_get((uint64_t)pool->handle).id;
    if (number == 0) return;
    add_exporter_row(pool, number, pool_export_rows_key(data), &extent);
    track_export(pool, number, &extent);
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
    CUresult result = REAL(cuMemPoolExportPointer)(data, pointer);
    if (result == CUDA_SUCCESS && container_is_limited()) record_export(data, pointer);
    return result;
}

static bool find_card(CUdeviceptr pointer, uint8_t uuid[UUID_SIZE]) {
    CUdevice device;
    return REAL(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == CUDA_SUCCESS &&
           cards_of_device(device, uuid);
}

/* Without a row, the memory is charged to this process until its pool ends; NVML does not count it here. */
static void charge_until_pool_ends(CUmemoryPool pool, const struct reservation *reservation, bool is_charged) {
    if (!is_charged) charge_unconditionally(reservation->card, reservation->bytes);
    charge_mark_managed(reservation->card, reservation->bytes);
    pool_ids_charge((uint64_t)pool, reservation->card, reservation->bytes);
}

/* Charges imported memory that no process of the container is charged for, because its exporter has ended or is in
 * another container. This happens after the driver's call, before which the size cannot be asked. Returns whether it
 * fits the limit; it is charged in either case. */
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

/* The row is added before the driver's call, so that the memory is charged if its exporter ends meanwhile. If the
 * call fails, the row stays until this process's pool ends: should the exporter end before, too much is charged until
 * then. */
static CUresult import(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    struct region_pool_export row = {.key = pool_export_rows_key(data), .role = POOL_IMPORTER};
    row.pool = pool_ids_get((uint64_t)pool).id;
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

/* The memory of a refused import stays on the card, and charged, until the pool is destroyed: freeing the pointer does
 * not give it back. */
EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    if (!pointer || !pool || !data || !container_is_limited()) return REAL(cuMemPoolImportPointer)(pointer, pool, data);
    int call_slot = charge_begin_call();
    CUresult result = import(pointer, pool, data);
    charge_end_call(call_slot);
    return result;
}
