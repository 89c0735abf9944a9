#include "books/pools.h"

#include <stddef.h>
#include <string.h>

#include "books/current_pools.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "process/fork.h"
#include "process/lock.h"

/* Where a pool was that is destroyed: looking for another goes on behind it. */
static struct CUmemPoolHandle_st *const GONE = (struct CUmemPoolHandle_st *)1;

static struct pool places[POOLS];  /* the handles atomically, under the mutex when written */
static uint64_t used_most[POOLS];  /* atomically; a free may be told when its pool's place is another's */
static struct pool *listed[POOLS]; /* under the mutex when written: the places ever taken, in that order */
static unsigned count;             /* atomically, under the mutex when written: places ever taken */
static unsigned suspended;         /* under the mutex */

static uint64_t ask(const struct pool *pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    return REAL(cuMemPoolGetAttribute)(pool->handle, which, &value) == CUDA_SUCCESS ? value : 0;
}

static uint64_t attribute(const struct pool *pool, CUmemPool_attribute which) {
    if (!capture_was_seen()) return ask(pool, which);
    uint64_t value = 0;
    CAPTURE_ALLOWS(value = ask(pool, which));
    return value;
}

uint64_t pools_reserved(const struct pool *pool) { return attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }

uint64_t pools_used(const struct pool *pool) { return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }

uint64_t pools_threshold(const struct pool *pool) { return attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD); }

int pools_index(const struct pool *pool) { return (int)(pool - places); }

uint64_t pools_add_used(const struct pool *pool, uint64_t bytes) {
    return __atomic_add_fetch(&used_most[pools_index(pool)], bytes, __ATOMIC_RELAXED);
}

void pools_set_used(const struct pool *pool, uint64_t bytes) {
    __atomic_store_n(&used_most[pools_index(pool)], bytes, __ATOMIC_RELAXED);
}

/* Where that was too much, which a pool in another's place may have, the sum is huge and the driver asked. */
void pools_subtract_used(struct recent_allocation freed) {
    if (freed.bytes) __atomic_fetch_sub(&used_most[freed.pool], freed.bytes, __ATOMIC_RELAXED);
}

/* The handle's place, or the first that it may take; NULL where all are taken. */
static struct pool *place_of(CUmemoryPool handle) {
    struct pool *room = NULL;
    size_t home = (size_t)(((uintptr_t)handle * 0x9e3779b97f4a7c15ULL) >> 32);
    for (size_t i = 0; i < POOLS; i++) {
        struct pool *pool = &places[(home + i) % POOLS];
        CUmemoryPool there = __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE);
        if (there == handle) return pool;
        if (!room && (there == GONE || !there)) room = pool;
        if (!there) return room;
    }
    return room;
}

void pools_lock(void) { lock_take(LOCK_POOLS); }

void pools_unlock(void) { lock_release(LOCK_POOLS); }

struct pool *pools_find(CUmemoryPool handle) {
    struct pool *pool = handle != GONE ? place_of(handle) : NULL;
    return pool && __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE) == handle ? pool : NULL;
}

/* Under the mutex. */
static void list(struct pool *pool) {
    listed[count] = pool;
    __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
}

/* All but its handle, which others may be comparing: a place taken anew stays GONE until it is filled. */
static void fill(struct pool *pool, const struct pool *made) {
    size_t behind = offsetof(struct pool, uuid);
    memcpy((char *)pool + behind, (const char *)made + behind, sizeof *pool - behind);
}

struct pool *pools_add(CUmemoryPool handle, const struct pool *made) {
    lock_take(LOCK_POOLS);
    struct pool *pool = place_of(handle);
    if (pool && pool->handle != handle) {
        bool is_first = !pool->handle;
        fill(pool, made);
        pools_set_used(pool, 0);
        __atomic_store_n(&pool->handle, handle, __ATOMIC_RELEASE);
        if (is_first) list(pool);
    }
    lock_release(LOCK_POOLS);
    return pool;
}

void pools_set_threshold(CUmemoryPool handle, uint64_t threshold) {
    struct pool *pool = pools_find(handle);
    if (pool) __atomic_store_n(&pool->kept, threshold, __ATOMIC_RELAXED);
}

bool pools_any(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED) != 0; }

void pools_suspend(void) {
    lock_take(LOCK_POOLS);
    suspended++;
    lock_release(LOCK_POOLS);
}

void pools_resume(void) {
    lock_take(LOCK_POOLS);
    suspended--;
    lock_release(LOCK_POOLS);
}

/* Under the mutex. */
static struct pool take(struct pool *pool) {
    struct pool taken = *pool;
    __atomic_store_n(&pool->handle, GONE, __ATOMIC_RELEASE);
    return taken;
}

struct pool pools_remove(CUmemoryPool handle) {
    lock_take(LOCK_POOLS);
    struct pool *pool = pools_find(handle);
    struct pool taken = pool ? take(pool) : (struct pool){0};
    lock_release(LOCK_POOLS);
    current_pools_invalidate();
    return taken;
}

struct pool pools_remove_any(void) {
    for (unsigned i = 0; i < count; i++)
        if (listed[i]->handle != GONE) return pools_remove(listed[i]->handle);
    return (struct pool){0};
}

static bool is_on(const struct pool *pool, int card) {
    return __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE) != GONE && pool->is_counted && pool->card == card;
}

/* What it has given back may have been exported. */
void pools_read_reserved(struct pool *pool) {
    uint64_t number = __atomic_load_n(&pool->number, __ATOMIC_RELAXED);
    uint64_t before = pool->seen;
    __atomic_store_n(&pool->seen, pools_reserved(pool), __ATOMIC_RELAXED);
    if (number != 0 && pool->seen < before) exports_shrink(number, before - pool->seen);
}

bool pools_may_have_shrunk(const struct pool *pool) {
    return __atomic_load_n(&pool->seen, __ATOMIC_RELAXED) > __atomic_load_n(&pool->kept, __ATOMIC_RELAXED);
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
        *measured += listed[i]->is_managed ? 0 : listed[i]->seen;
    }
    return !suspended;
}

struct pool *pools_next(int card, unsigned *at) {
    while (!suspended && *at < count)
        if (is_on(listed[(*at)++], card)) return listed[*at - 1];
    return NULL;
}

void pools_mark_charged(int card, uint32_t settled) {
    for (unsigned i = 0; i < count; i++) {
        if (!is_on(listed[i], card) || listed[i]->is_managed) continue;
        __atomic_store_n(&listed[i]->reserved, listed[i]->seen, __ATOMIC_RELAXED);
        __atomic_store_n(&listed[i]->settled, settled, __ATOMIC_RELAXED);
    }
}

static void forget(void) {
    current_pools_invalidate();
    memset(places, 0, sizeof places);
    count = suspended = 0;
}
FORGET_IN_CHILD(forget);
