#include "hooks/pools/pool_growth.h"

#include "books/pools/current_pools.h"
#include "books/pools/exports.h"
#include "books/pools/pool_guard.h"
#include "charge/measure/measured_call.h"
#include "charge/reserve/attempt.h"
#include "charge/reserve/refusals.h"
#include "common/clock.h"
#include "container/container.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "hooks/pools/pool_charge.h"
#include "region/account.h"

#define ALLOCATION_UNIT 512ULL       /* an allocation takes a multiple of this many bytes from its pool */
#define SIZE_LIMIT      (1ULL << 48) /* bytes; more than any card has, so that sums of sizes below it do not overflow */

/* Whether the container is over the limit that was last compared with its sum. Pools may have grown past it: what is
 * free in them is then no room. Two loads, because this is asked at each allocation. */
static bool is_container_over(const struct pool *pool) {
    const struct region *region = container_region();
    const struct region_card *row = region && pool->card >= 0 ? &region->cards[pool->card] : NULL;
    return row && __atomic_load_n(&row->used, __ATOMIC_RELAXED) > __atomic_load_n(&row->limit, __ATOMIC_RELAXED);
}

/* After a correction by another process, the pool's charge may stand for memory that the pool has given back. */
static bool has_room(struct pool *pool, uint64_t bytes) {
    return bytes < SIZE_LIMIT && !is_container_over(pool) && pool_charge_is_uncorrected(pool) &&
           pools_add_used(pool, round_up(bytes, ALLOCATION_UNIT)) <= __atomic_load_n(&pool->charged, __ATOMIC_RELAXED);
}

/* Lower bound of the pool's growth for `bytes` more, in whole steps; 0 if its charge covers them. The estimate of used
 * bytes only errs upwards, because not every free is counted, so it is read from the driver here. If the charge is too
 * small, room is what is charged and still reserved: the charge of memory that the pool has given back may be released
 * before the growth is charged. */
static uint64_t missing_bytes(struct pool *pool, uint64_t bytes) {
    if (bytes >= SIZE_LIMIT) return SIZE_LIMIT;
    uint64_t charged = __atomic_load_n(&pool->charged, __ATOMIC_RELAXED);
    uint64_t needed = pools_used(pool) + round_up(bytes, ALLOCATION_UNIT);
    pools_set_used(pool, needed);
    if (needed <= charged) return 0;
    uint64_t reserved = pools_reserved(pool);
    return round_up(needed - (reserved < charged ? reserved : charged), POOL_STEP);
}

/* A pool grows by `missing` if its free memory lies at its end, and by the whole allocation if that is fragmented. The
 * larger is reserved if it fits, else the smaller; `pool_growth_fits` sees what the pool has taken. */
static bool reserve(struct pool_growth *growth, uint64_t bytes, uint64_t missing) {
    uint64_t largest_growth = bytes < SIZE_LIMIT ? round_up(bytes, POOL_STEP) : SIZE_LIMIT;
    return charge_try(growth->pool->uuid, largest_growth, &growth->reservation) ||
           charge_reserve(growth->function_name, growth->pool->uuid,
                          missing < largest_growth ? missing : largest_growth, &growth->reservation);
}

static void reserve_growth(struct pool_growth *growth, uint64_t bytes, uint64_t missing) {
    growth->call_slot = charge_begin_call();
    growth->is_reserved = reserve(growth, bytes, missing);
    growth->is_refused = !growth->is_reserved;
    if (growth->is_refused) charge_end_call(growth->call_slot);
}

/* From here to `pool_growth_end` no pool is destroyed. False if this one was destroyed before. */
static bool enter_guard(struct pool_growth *growth) {
    if (!growth->is_guarded) pool_guard_enter();
    growth->is_guarded = true;
    return pools_find(growth->handle) == growth->pool;
}

static bool is_limit_exceeded(const struct pool *pool) {
    return account_used(container_region(), pool->card) > container_memory_limit(pool->uuid);
}

/* False if the container stays over its limit although idle memory was given back. */
static bool end_excess(const struct pool *pool) {
    int call_slot = charge_begin_call();
    charge_trim_and_correct(pool->uuid);
    charge_end_call(call_slot);
    return !is_limit_exceeded(pool);
}

static void refuse_excess(struct pool_growth *growth, uint64_t bytes) {
    growth->is_refused = true;
    refusals_report(growth->function_name, growth->pool->uuid, bytes);
}

static void make_room(struct pool_growth *growth, uint64_t bytes, bool (*is_captured)(CUstream), CUstream stream) {
    if (!enter_guard(growth)) return;
    if (exports_any() || !pool_charge_is_uncorrected(growth->pool))
        pool_charge_check(growth->pool); /* a shrink, which may be of lost memory, cannot be seen after the growth */
    if (is_captured(stream)) return;
    if (is_container_over(growth->pool) && !end_excess(growth->pool)) {
        refuse_excess(growth, bytes);
        return;
    }
    uint64_t missing = missing_bytes(growth->pool, bytes);
    if (missing != 0) reserve_growth(growth, bytes, missing);
}

static void begin_growth(struct pool_growth *growth, uint64_t bytes, bool (*is_captured)(CUstream), CUstream stream) {
    struct pool *pool = growth->pool;
    growth->call_slot = -1;
    if (!pool || !pool->is_counted) return;
    growth->handle = __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE);
    growth->growths_before = __atomic_load_n(&pool->growths, __ATOMIC_ACQUIRE);
    if (!has_room(pool, bytes) || exports_any()) make_room(growth, bytes, is_captured, stream);
}

struct pool_growth pool_growth_begin(const char *function_name, struct pool *pool, uint64_t bytes,
                                     bool (*is_captured)(CUstream), CUstream stream) {
    struct pool_growth growth = {.function_name = function_name, .pool = pool};
    begin_growth(&growth, bytes, is_captured, stream);
    return growth;
}

/* A device's default pool is never destroyed. A pool that the program made current is guarded until the driver has
 * allocated from it, so that a thread in cuMemPoolDestroy sees the allocation. */
struct pool_growth pool_growth_begin_current(const char *function_name, uint64_t bytes, bool (*is_captured)(CUstream),
                                             CUstream stream) {
    struct pool_growth growth = {.function_name = function_name, .pool = current_pools_cached_default()};
    if (!growth.pool) pool_guard_enter();
    growth.is_guarded = !growth.pool;
    if (growth.is_guarded) growth.pool = current_pools_get();
    begin_growth(&growth, bytes, is_captured, stream);
    return growth;
}

void pool_growth_end(struct pool_growth *growth) {
    if (growth->is_guarded) pool_guard_leave();
}

/* Called at the end of an allocation: whether less than 8192 ticks (2 to 8 us) have passed since the end of this
 * thread's previous allocation. Then this one has not grown a pool. To grow, a pool asks the kernel for memory, which
 * takes at least 25 us. Without growth an allocation takes 0.5 us, and asking what is reserved would cost a tenth to a
 * third of that (measured on an H200, driver 580; docs/adr/0014). */
static bool is_soon_after_previous(void) {
    static __thread uint64_t last;
    uint64_t before = last;
    last = clock_ticks();
    return last - before < clock_ticks_quarter_second() >> 16;
}

/* Another thread may record the growth that this thread's call has caused, and this call may take memory by which the
 * pool has grown for another thread since the room was looked for. So every call is refused in which the pool has
 * grown, whoever caused or recorded that. The charge does not show it: it may have been as high before, for an
 * allocation that was refused meanwhile. */
static bool is_over(const struct pool_growth *growth) {
    const struct pool *pool = growth->pool;
    return __atomic_load_n(&pool->growths, __ATOMIC_RELAXED) != growth->growths_before && is_limit_exceeded(pool);
}

static bool fits_after_update(struct pool_growth *growth, const struct reservation *reservation, unsigned own_calls) {
    pool_charge_update(growth->pool, reservation, own_calls);
    return !is_over(growth);
}

/* Whether the other pool has grown in this call is unknown, so it counts as grown. */
static void change_pool(struct pool_growth *growth, struct pool *actual) {
    if (growth->pool == actual) return;
    growth->pool = actual;
    growth->growths_before = __atomic_load_n(&actual->growths, __ATOMIC_RELAXED) - 1;
}

static CUmemoryPool query_pool_of_pointer(CUdeviceptr pointer) {
    CUmemoryPool handle = NULL;
    REAL(cuPointerGetAttribute)((void *)&handle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer);
    return handle;
}

static CUmemoryPool pool_of_pointer(CUdeviceptr pointer) {
    if (!capture_was_seen()) return query_pool_of_pointer(pointer);
    CUmemoryPool handle = NULL;
    CAPTURE_ALLOWS(handle = query_pool_of_pointer(pointer));
    return handle;
}

/* Another thread may have made another pool current, so the pool is looked up by the pointer. A pointer of no pool
 * belongs to a graph, which is charged elsewhere. If the pointer's pool has been destroyed since, only NVML knows its
 * memory. */
static bool fits_in_actual_pool(struct pool_growth *growth, CUdeviceptr pointer) {
    enter_guard(growth);
    CUmemoryPool handle = pool_of_pointer(pointer);
    struct pool *pool = handle ? pools_find(handle) : NULL;
    if (handle && !pool) measured_call_reconcile();
    if (!pool || !pool->is_counted || (growth->is_reserved && pool == growth->pool)) return true;
    change_pool(growth, pool);
    if (!pool_charge_is_due(pool)) return !is_over(growth);
    return fits_after_update(growth, &(struct reservation){0}, growth->is_reserved);
}

bool pool_growth_fits(struct pool_growth *growth, CUresult result, CUdeviceptr pointer) {
    bool may_have_grown = growth->handle && !is_soon_after_previous();
    bool is_fitting = !growth->is_reserved || fits_after_update(growth, &growth->reservation, 1);
    if (result == CUDA_SUCCESS && (growth->is_reserved || may_have_grown))
        is_fitting &= fits_in_actual_pool(growth, pointer);
    charge_end_call(growth->call_slot);
    return is_fitting || result != CUDA_SUCCESS;
}
