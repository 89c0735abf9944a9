#include "books/pools/pools.h"

#include <stddef.h>
#include <string.h>

#include "books/pools/current_pool_cache.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "process/fork.h"
#include "process/lock.h"

/* Handle of a place whose pool was destroyed: unlike NULL, it does not end a search. */
static struct CUmemPoolHandle_st *const DESTROYED = (struct CUmemPoolHandle_st *)1;

static struct pool table[POOLS]; /* hash table by handle, open addressing; see struct pool */
static uint64_t used_max[POOLS]; /* atomic: upper bound of the allocated bytes of each pool in `table` */

/* The places in `table` that were ever used, in order of first use. Written under LOCK_POOLS, before `count`. */
static struct pool *listed[POOLS];
static unsigned count;     /* atomic, written under LOCK_POOLS: number of places in `listed` */
static unsigned suspended; /* LOCK_POOLS: calls under way that may destroy pools */

static uint64_t query_attribute(const struct pool *pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    return REAL(cuMemPoolGetAttribute)(pool->handle, which, &value) == CUDA_SUCCESS ? value : 0;
}

static uint64_t attribute_of(const struct pool *pool, CUmemPool_attribute which) {
    if (!capture_was_seen()) return query_attribute(pool, which);
    uint64_t value = 0;
    CAPTURE_ALLOWS(value = query_attribute(pool, which));
    return value;
}

uint64_t pools_reserved(const struct pool *pool) { return attribute_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }

uint64_t pools_used(const struct pool *pool) { return attribute_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }

uint64_t pools_threshold(const struct pool *pool) { return attribute_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD); }

int pools_index(const struct pool *pool) { return (int)(pool - table); }

uint64_t pools_add_used(const struct pool *pool, uint64_t bytes) {
    return __atomic_add_fetch(&used_max[pools_index(pool)], bytes, __ATOMIC_RELAXED);
}

void pools_set_used(const struct pool *pool, uint64_t bytes) {
    __atomic_store_n(&used_max[pools_index(pool)], bytes, __ATOMIC_RELAXED);
}

/* The bound may wrap below zero if the pool was destroyed and another one has its place. Then the bound is huge, and
 * the driver is asked at the next allocation. */
void pools_subtract_used(struct recent_allocation freed) {
    if (freed.bytes) __atomic_fetch_sub(&used_max[freed.pool], freed.bytes, __ATOMIC_RELAXED);
}

/* The place of a handle, else the first place that it may use; NULL where all are in use. */
static struct pool *find_place(CUmemoryPool handle) {
    struct pool *free_place = NULL;
    size_t home = (size_t)(((uintptr_t)handle * 0x9e3779b97f4a7c15ULL) >> 32);
    for (size_t i = 0; i < POOLS; i++) {
        struct pool *pool = &table[(home + i) % POOLS];
        CUmemoryPool present = __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE);
        if (present == handle) return pool;
        if (!free_place && (present == DESTROYED || !present)) free_place = pool;
        if (!present) return free_place;
    }
    return free_place;
}

struct pool *pools_find(CUmemoryPool handle) {
    struct pool *pool = handle != DESTROYED ? find_place(handle) : NULL;
    return pool && __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE) == handle ? pool : NULL;
}

/* The caller holds LOCK_POOLS. */
static void list(struct pool *pool) {
    listed[count] = pool;
    __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
}

/* Copies all fields but the handle, which other threads may be comparing: a place that is used anew stays DESTROYED
 * until its fields are complete. */
static void fill(struct pool *pool, const struct pool *source) {
    size_t offset = offsetof(struct pool, uuid);
    memcpy((char *)pool + offset, (const char *)source + offset, sizeof *pool - offset);
}

struct pool *pools_add(CUmemoryPool handle, const struct pool *source) {
    HOLD_LOCK(LOCK_POOLS);
    struct pool *pool = find_place(handle);
    if (pool && pool->handle != handle) {
        bool is_first = !pool->handle;
        fill(pool, source);
        pools_set_used(pool, 0);
        __atomic_store_n(&pool->handle, handle, __ATOMIC_RELEASE);
        if (is_first) list(pool);
    }
    return pool;
}

void pools_set_threshold(CUmemoryPool handle, uint64_t threshold) {
    struct pool *pool = pools_find(handle);
    if (pool) __atomic_store_n(&pool->release_threshold, threshold, __ATOMIC_RELAXED);
}

bool pools_any(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED) != 0; }

void pools_suspend(void) {
    HOLD_LOCK(LOCK_POOLS);
    suspended++;
}

void pools_resume(void) {
    HOLD_LOCK(LOCK_POOLS);
    suspended--;
}

/* The caller holds LOCK_POOLS. */
static struct pool take(struct pool *pool) {
    struct pool taken = *pool;
    __atomic_store_n(&pool->handle, DESTROYED, __ATOMIC_RELEASE);
    return taken;
}

static struct pool find_and_take(CUmemoryPool handle) {
    HOLD_LOCK(LOCK_POOLS);
    struct pool *pool = pools_find(handle);
    return pool ? take(pool) : (struct pool){0};
}

struct pool pools_remove(CUmemoryPool handle) {
    struct pool taken = find_and_take(handle);
    current_pool_cache_drop();
    return taken;
}

static bool is_on(const struct pool *pool, int card) {
    return __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE) != DESTROYED && pool->is_counted && pool->card == card;
}

/* Memory that the pool has given back may have been exported: then it is lost. */
void pools_read_reserved(struct pool *pool) {
    uint64_t number = __atomic_load_n(&pool->id, __ATOMIC_RELAXED);
    uint64_t last_seen = pool->last_reserved;
    __atomic_store_n(&pool->last_reserved, pools_reserved(pool), __ATOMIC_RELAXED);
    if (number != 0 && pool->last_reserved < last_seen) exports_shrink(number, last_seen - pool->last_reserved);
}

bool pools_may_have_shrunk(const struct pool *pool) {
    return __atomic_load_n(&pool->last_reserved, __ATOMIC_RELAXED) >
           __atomic_load_n(&pool->release_threshold, __ATOMIC_RELAXED);
}

bool pools_any_may_have_shrunk(int card) {
    unsigned known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < known; i++)
        if (is_on(listed[i], card) && pools_may_have_shrunk(listed[i])) return true;
    return false;
}

bool pools_read_card(int card, uint64_t *measured) {
    *measured = 0;
    for (unsigned i = 0; i < count && !suspended; i++) {
        if (!is_on(listed[i], card)) continue;
        pools_read_reserved(listed[i]);
        *measured += listed[i]->is_managed ? 0 : listed[i]->last_reserved;
    }
    return !suspended;
}

struct pool *pools_next(int card, unsigned *index) {
    while (!suspended && *index < count)
        if (is_on(listed[(*index)++], card)) return listed[*index - 1];
    return NULL;
}

void pools_set_charged(struct pool *pool, uint32_t corrections) {
    bool has_grown = pool->last_reserved > pool->charged;
    __atomic_store_n(&pool->growths, pool->growths + has_grown, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->charged, pool->last_reserved, __ATOMIC_RELEASE);
    __atomic_store_n(&pool->corrections_when_charged, corrections, __ATOMIC_RELAXED);
}

void pools_mark_charged(int card, uint32_t corrections) {
    for (unsigned i = 0; i < count; i++)
        if (is_on(listed[i], card) && !listed[i]->is_managed) pools_set_charged(listed[i], corrections);
}

static void forget(void) {
    current_pool_cache_drop();
    memset(table, 0, sizeof table);
    count = suspended = 0;
}
FORGET_IN_CHILD(forget);
