#include "pools.h"

#include <pthread.h>
#include <string.h>

#include "account.h"
#include "capture.h"
#include "cards.h"
#include "charge.h"
#include "hooks.h"
#include "place.h"

enum { PLACES = 256, DEVICES = 64 };

/* Where a pool was that is destroyed: looking for another goes on behind it. */
static struct CUmemPoolHandle_st *const GONE = (struct CUmemPoolHandle_st *)1;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pool places[PLACES];    /* the handles atomically, under the mutex when written */
static struct pool *listed[PLACES];   /* under the mutex when written: the places ever taken, in that order */
static unsigned count;                /* atomically, under the mutex when written: places ever taken */
static unsigned suspended;            /* under the mutex */
static struct pool *current[DEVICES]; /* atomically; NULL: the driver is to be asked */
static unsigned changes;              /* atomically: of what is current */

void pools_lock(void) { pthread_mutex_lock(&mutex); }

void pools_unlock(void) { pthread_mutex_unlock(&mutex); }

static uint64_t ask(const struct pool *pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    return REAL(cuMemPoolGetAttribute)(pool->handle, which, &value) == CUDA_SUCCESS ? value : 0;
}

static uint64_t attribute(const struct pool *pool, CUmemPool_attribute which) {
    if (!capture_was_seen()) return ask(pool, which);
    int mode = capture_allow();
    uint64_t value = ask(pool, which);
    capture_restore(mode);
    return value;
}

uint64_t pools_reserved(const struct pool *pool) { return attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }

uint64_t pools_used(const struct pool *pool) { return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }

/* The handle's place, or the first that it may take; NULL where all are taken. */
static struct pool *place_of(CUmemoryPool handle) {
    struct pool *room = NULL;
    size_t home = (size_t)(((uintptr_t)handle * 0x9e3779b97f4a7c15ULL) >> 32);
    for (size_t i = 0; i < PLACES; i++) {
        struct pool *pool = &places[(home + i) % PLACES];
        CUmemoryPool there = __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE);
        if (there == handle) return pool;
        if (!room && (there == GONE || !there)) room = pool;
        if (!there) return room;
    }
    return room;
}

static struct pool *known(CUmemoryPool handle) {
    struct pool *pool = place_of(handle);
    return pool && __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE) == handle ? pool : NULL;
}

/* Under the mutex. */
static void list(struct pool *pool) {
    listed[count] = pool;
    __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
}

static struct pool *add(const struct pool *made, CUmemoryPool handle) {
    pools_lock();
    struct pool *pool = place_of(handle);
    if (pool && pool->handle != handle) {
        bool is_first = !pool->handle;
        *pool = *made;
        __atomic_store_n(&pool->handle, handle, __ATOMIC_RELEASE);
        if (is_first) list(pool);
    }
    pools_unlock();
    return pool;
}

/* A new pool has reserved nothing, and nothing is charged for it. Of one that was there before we heard of it a
 * measurement may have: it is charged by the next one. */
static struct pool *add_on(CUmemoryPool handle, CUdevice device, bool is_managed, bool is_new) {
    struct pool made = {.card = -1, .is_managed = is_managed};
    struct region *region = place_region();
    made.is_counted = cards_of_device(device, made.uuid);
    if (made.is_counted) charge_join(made.uuid);
    if (region) made.card = account_find_card(region, made.uuid);
    if (region) made.settled = account_settled(region, place_slot(region), made.card) - !is_new;
    return add(&made, handle);
}

void pools_learn(CUmemoryPool handle, const CUmemLocation *location, CUmemAllocationType type, bool is_new) {
    static const struct pool on_host = {.card = -1};
    CUdevice device = location->id;
    bool is_managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    bool is_on_card = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (known(handle)) return;
    if (is_on_card || (is_managed && REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS))
        add_on(handle, device, is_managed, is_new);
    else
        add(&on_host, handle);
}

static bool is_default_of(CUmemoryPool handle, CUdevice device) {
    CUmemoryPool pool;
    return REAL(cuDeviceGetDefaultMemPool)(&pool, device) == CUDA_SUCCESS && pool == handle;
}

static bool find_device(CUmemoryPool handle, CUdevice *device) {
    int devices = 0;
    if (REAL(cuDeviceGetCount)(&devices) != CUDA_SUCCESS) return false;
    for (*device = 0; *device < devices; ++*device)
        if (is_default_of(handle, *device)) return true;
    return REAL(cuCtxGetDevice)(device) == CUDA_SUCCESS;
}

struct pool *pools_find(CUmemoryPool handle) {
    CUdevice device;
    struct pool *pool = handle ? known(handle) : NULL;
    if (pool || !handle || !find_device(handle, &device)) return pool;
    return add_on(handle, device, false, false);
}

bool pools_any(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED) != 0; }

void pools_current_changes(void) {
    __atomic_fetch_add(&changes, 1, __ATOMIC_SEQ_CST);
    for (int device = 0; device < DEVICES; device++) __atomic_store_n(&current[device], NULL, __ATOMIC_SEQ_CST);
}

/* What was asked for while it changed is not kept. */
static struct pool *ask_current(CUdevice device) {
    CUmemoryPool handle;
    unsigned before = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
    if (REAL(cuDeviceGetMemPool)(&handle, device) != CUDA_SUCCESS) return NULL;
    struct pool *pool = known(handle);
    if (!pool) pool = add_on(handle, device, false, false);
    if (device >= DEVICES) return pool;
    __atomic_store_n(&current[device], pool, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&changes, __ATOMIC_SEQ_CST) != before)
        __atomic_store_n(&current[device], NULL, __ATOMIC_SEQ_CST);
    return pool;
}

/* Where there is one device no context is on another; most containers have one. */
static bool is_only_device(void) {
    static int devices; /* atomically; 0: not asked yet */
    int known = __atomic_load_n(&devices, __ATOMIC_RELAXED);
    if (known == 0 && REAL(cuDeviceGetCount)(&known) == CUDA_SUCCESS)
        __atomic_store_n(&devices, known, __ATOMIC_RELAXED);
    return known == 1;
}

struct pool *pools_current(void) {
    CUdevice device = 0;
    if (!is_only_device() && (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS || device < 0)) return NULL;
    struct pool *pool = device < DEVICES ? __atomic_load_n(&current[device], __ATOMIC_ACQUIRE) : NULL;
    return pool ? pool : ask_current(device);
}

void pools_suspend(void) {
    pools_lock();
    suspended++;
    pools_unlock();
}

void pools_resume(void) {
    pools_lock();
    suspended--;
    pools_unlock();
}

/* Under the mutex. */
static struct pool take(struct pool *pool) {
    struct pool taken = *pool;
    __atomic_store_n(&pool->handle, GONE, __ATOMIC_RELEASE);
    return taken;
}

struct pool pools_drop(CUmemoryPool handle) {
    pools_lock();
    struct pool *pool = known(handle);
    struct pool taken = pool ? take(pool) : (struct pool){0};
    pools_unlock();
    pools_current_changes();
    return taken;
}

struct pool pools_drop_any(void) {
    for (unsigned i = 0; i < count; i++)
        if (listed[i]->handle != GONE) return pools_drop(listed[i]->handle);
    return (struct pool){0};
}

static bool is_on(const struct pool *pool, int card) {
    return __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE) != GONE && pool->is_counted && pool->card == card;
}

bool pools_see(int card, uint64_t *measured) {
    *measured = 0;
    for (unsigned i = 0; i < count && !suspended; i++) {
        if (!is_on(listed[i], card)) continue;
        listed[i]->seen = pools_reserved(listed[i]);
        *measured += listed[i]->is_managed ? 0 : listed[i]->seen;
    }
    return !suspended;
}

struct pool *pools_next(int card, unsigned *at) {
    while (!suspended && *at < count)
        if (is_on(listed[(*at)++], card)) return listed[*at - 1];
    return NULL;
}

void pools_adopt(int card, uint32_t settled) {
    for (unsigned i = 0; i < count; i++) {
        if (!is_on(listed[i], card) || listed[i]->is_managed) continue;
        __atomic_store_n(&listed[i]->reserved, listed[i]->seen, __ATOMIC_RELAXED);
        __atomic_store_n(&listed[i]->settled, settled, __ATOMIC_RELAXED);
    }
}

void pools_forget(void) {
    memset(places, 0, sizeof places);
    memset((void *)current, 0, sizeof current);
    count = suspended = 0;
}
