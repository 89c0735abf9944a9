/* Pointers of other processes' pools. The memory is charged to its maker as long as his row says so, then to the card,
 * by the rows of who imported it (shares.h). An importer's own pool is asked in vain what it has reserved, and gives
 * back nothing before it is destroyed (measured on an H200, driver 580). */
#include "books/imports.h"
#include "books/pool_ids.h"
#include "books/pools.h"
#include "charge/charge.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "hooks/pools/pool_export_rows.h"
#include "region/account.h"

static bool find_card(CUdeviceptr pointer, uint8_t uuid[UUID_SIZE]) {
    CUdevice device;
    return REAL(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == CUDA_SUCCESS &&
           cards_of_device(device, uuid);
}

/* There is no room for the row: what is charged stays this process's own until its pool ends. */
static void keep(CUmemoryPool pool, const struct reservation *reservation, bool is_charged) {
    if (!is_charged) charge_unconditionally(reservation->card, reservation->bytes);
    charge_mark_managed(reservation->card, reservation->bytes);
    pool_ids_charge((uint64_t)pool, reservation->card, reservation->bytes);
}

/* Memory that nobody in the container is charged for: its maker is gone, or in another one. How large it is can be
 * asked only now. */
static bool take_on(struct region_pool_export *row, CUmemoryPool pool, CUdeviceptr pointer) {
    uint8_t uuid[UUID_SIZE];
    struct extent extent;
    struct reservation reservation;
    if (!find_card(pointer, uuid) || !pool_export_rows_extent(pointer, &extent)) return false;
    row->group = row->key;
    row->bytes = extent.steps * POOL_STEP;
    bool fits = charge_reserve("cuMemPoolImportPointer", uuid, row->bytes, &reservation);
    row->card = (uint32_t)reservation.card;
    if (!pool_export_rows_add(row, fits ? row->bytes : 0)) keep(pool, &reservation, fits);
    return fits;
}

/* The row comes before the driver's call, so that the memory is charged should its maker end meanwhile. Where the call
 * fails, it stays until the pool ends: too much is charged then, if the maker ends before. */
static CUresult import(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    struct region_pool_export row = {.key = pool_export_rows_key(data), .kind = POOL_IMPORTER};
    row.pool = pool_ids_get((uint64_t)pool).number;
    enum joined joined = row.pool ? pool_export_rows_join(&row) : LOCKED;
    if (joined == LOCKED) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemPoolImportPointer)(pointer, pool, data);
    if (result != CUDA_SUCCESS) return result;
    imports_add(row.pool, *pointer);
    if (joined == JOINED || take_on(&row, pool, *pointer)) return CUDA_SUCCESS;
    imports_free(*pointer);
    REAL(cuMemFree_v2)(*pointer);
    *pointer = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is refused stays on the card, and charged, until the pool ends, for its memory cannot be given back alone. */
EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    if (!pointer || !pool || !data || !charge_is_limited()) return REAL(cuMemPoolImportPointer)(pointer, pool, data);
    int call_slot = charge_begin_call();
    CUresult result = import(pointer, pool, data);
    charge_end_call(call_slot);
    return result;
}
