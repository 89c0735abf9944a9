/* Pointers of pools that other processes use. The memory is charged to its maker as long as his row says so, then to
 * the card, by the rows of who imported it (shares.h). An importer's own pool is asked in vain what it has reserved,
 * and gives back nothing before it is destroyed (measured on an H200, driver 580). */
#include "account.h"
#include "cards.h"
#include "charge.h"
#include "hooks.h"
#include "place.h"
#include "pool_numbers.h"
#include "pools.h"
#include "shares.h"

/* FNV-1a. */
static uint64_t hash(const void *bytes, size_t size) {
    uint64_t sum = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < size; i++) sum = (sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ULL;
    return sum;
}

/* The steps that the pool has taken the pointer's memory in: the first one's number, and how many. They lie at
 * multiples of their size. */
static bool steps_of(CUdeviceptr pointer, uint64_t *first, uint64_t *count) {
    CUdeviceptr base;
    size_t size;
    if (REAL(cuMemGetAddressRange_v2)(&base, &size, pointer) != CUDA_SUCCESS || size == 0) return false;
    *first = base / POOL_STEP;
    *count = (base + size - 1) / POOL_STEP - *first + 1;
    return true;
}

/* Pointers of one pool that lie in the same steps hold the same memory. */
static uint64_t group_of(uint64_t number, uint64_t first, uint64_t count) {
    struct identity self = place_self();
    const uint64_t all[] = {self.pid, self.start_time, self.namespace, number, first, count};
    return hash(all, sizeof all);
}

/* Adds this process's row; takes back what was charged ahead of it. Under the region's lock. */
static bool add(struct region *region, struct region_share *row, uint64_t claimed) {
    int slot = place_claim_slot(region);
    row->slot = (uint32_t)slot;
    return slot >= 0 && account_share(region, row, claimed);
}

static bool lock_and_add(struct region_share *row, uint64_t claimed) {
    struct region *region = place_region();
    if (!region || region_lock(region, CHARGE_LOCK_MS) != 0) return false;
    bool added = add(region, row, claimed);
    region_unlock(region);
    return added;
}

static const struct pool *pool_of(CUdeviceptr pointer) {
    CUmemoryPool handle = NULL;
    REAL(cuPointerGetAttribute)((void *)&handle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer);
    return pools_find(handle);
}

/* Where there is no room for the row, who imports the pointer is charged at once. */
static void made(const CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
    uint64_t first, count;
    const struct pool *pool = pool_of(pointer);
    if (!pool || !pool->is_counted || pool->card < 0 || !steps_of(pointer, &first, &count)) return;
    uint64_t number = pool_numbers_get((uint64_t)pool->handle).number;
    struct region_share row = {.key = hash(data, sizeof *data),
                               .group = group_of(number, first, count),
                               .bytes = count * POOL_STEP,
                               .pool = number,
                               .card = (uint32_t)pool->card,
                               .kind = SHARE_MAKER};
    if (number != 0) lock_and_add(&row, 0);
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
    CUresult result = REAL(cuMemPoolExportPointer)(data, pointer);
    if (result == CUDA_SUCCESS && charge_is_limited()) made(data, pointer);
    return result;
}

enum joined { JOINED, UNKNOWN, LOCKED };

/* Under the region's lock. */
static enum joined join(struct region *region, struct region_share *row) {
    struct region_share known;
    if (!shares_find(region, row->key, &known)) return UNKNOWN;
    row->group = known.group;
    row->bytes = known.bytes;
    row->card = known.card;
    return add(region, row, 0) ? JOINED : UNKNOWN;
}

/* Before the driver's call, so that the memory is charged should its maker end meanwhile. Where the call fails, the row
 * stays until the pool ends: too much is charged then, if the maker ends before. */
static enum joined lock_and_join(struct region_share *row) {
    struct region *region = place_region();
    if (!region || region_lock(region, CHARGE_LOCK_MS) != 0) return LOCKED;
    enum joined joined = join(region, row);
    region_unlock(region);
    return joined;
}

static bool find_card(CUdeviceptr pointer, uint8_t uuid[UUID_SIZE]) {
    CUdevice device;
    return REAL(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) == CUDA_SUCCESS &&
           cards_of_device(device, uuid);
}

/* The driver has it, whether it fits or not. */
static void charge_anyway(int card, uint64_t bytes) {
    struct region *region = place_region();
    if (region_lock(region, CHARGE_LOCK_MS) != 0) return;
    account_reserve(region, place_slot(region), card, bytes, UNLIMITED);
    region_unlock(region);
}

/* There is no room for the row: what is charged stays this process's own until its pool ends. */
static void keep(CUmemoryPool pool, const struct claim *claim, bool is_charged) {
    if (!is_charged) charge_anyway(claim->card, claim->bytes);
    charge_mark_managed(claim->card, claim->bytes);
    pool_numbers_charge((uint64_t)pool, claim->card, claim->bytes);
}

/* Memory that nobody in the container is charged for: its maker is gone, or in another one. How large it is can be
 * asked only now. */
static bool take_on(struct region_share *row, CUmemoryPool pool, CUdeviceptr pointer) {
    uint8_t uuid[UUID_SIZE];
    uint64_t first, count;
    struct claim claim;
    if (!find_card(pointer, uuid) || !steps_of(pointer, &first, &count)) return false;
    row->group = row->key;
    row->bytes = count * POOL_STEP;
    bool fits = charge_reserve("cuMemPoolImportPointer", uuid, row->bytes, &claim);
    row->card = (uint32_t)claim.card;
    if (!lock_and_add(row, fits ? row->bytes : 0)) keep(pool, &claim, fits);
    return fits;
}

static CUresult import(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    struct region_share row = {.key = hash(data, sizeof *data), .kind = SHARE_IMPORTER};
    row.pool = pool_numbers_get((uint64_t)pool).number;
    enum joined joined = row.pool ? lock_and_join(&row) : LOCKED;
    if (joined == LOCKED) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemPoolImportPointer)(pointer, pool, data);
    if (result != CUDA_SUCCESS || joined == JOINED || take_on(&row, pool, *pointer)) return result;
    REAL(cuMemFree_v2)(*pointer);
    *pointer = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* What is refused stays on the card, and charged, until the pool ends, for its memory cannot be given back alone. */
EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    if (!pointer || !pool || !data || !charge_is_limited()) return REAL(cuMemPoolImportPointer)(pointer, pool, data);
    int span = charge_enter();
    CUresult result = import(pointer, pool, data);
    charge_leave(span);
    return result;
}
