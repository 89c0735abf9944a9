#include "books/current_pools.h"

#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "region/account.h"

enum { DEVICES = 64 };

static struct pool *current[DEVICES]; /* atomically; NULL: the driver is to be asked */
static unsigned changes;              /* atomically: of what is current */
static bool was_chosen;               /* atomically: what is current, by the program */

/* A new pool has reserved nothing, and nothing is charged for it. Of one that was there before we heard of it a
 * measurement may have: it is charged by the next one. */
static struct pool *add_on(CUmemoryPool handle, CUdevice device, bool is_managed, bool is_new) {
    struct pool made = {.handle = handle, .card = -1, .is_managed = is_managed};
    struct region *region = container_region();
    made.is_counted = cards_of_device(device, made.uuid);
    if (made.is_counted) container_join(made.uuid);
    if (region) made.card = account_find_card(region, made.uuid);
    if (region) made.measured = account_corrections_field(region, container_slot(region), made.card);
    made.kept = pools_threshold(&made);
    made.seen = is_new ? 0 : pools_reserved(&made);
    if (made.measured) made.settled = __atomic_load_n(made.measured, __ATOMIC_ACQUIRE) - !is_new;
    return pools_add(handle, &made);
}

void current_pools_learn(CUmemoryPool handle, const CUmemLocation *location, CUmemAllocationType type, bool is_new) {
    static const struct pool on_host = {.card = -1};
    CUdevice device = location->id;
    bool is_managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    bool is_on_card = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (pools_find(handle)) return;
    if (is_on_card || (is_managed && REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS))
        add_on(handle, device, is_managed, is_new);
    else
        pools_add(handle, &on_host);
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

struct pool *current_pools_find(CUmemoryPool handle) {
    CUdevice device;
    struct pool *pool = handle ? pools_find(handle) : NULL;
    if (pool || !handle || !find_device(handle, &device)) return pool;
    return add_on(handle, device, false, false);
}

void current_pools_invalidate(void) {
    __atomic_fetch_add(&changes, 1, __ATOMIC_SEQ_CST);
    for (int device = 0; device < DEVICES; device++) __atomic_store_n(&current[device], NULL, __ATOMIC_SEQ_CST);
}

/* What was asked for while it changed is not kept. */
static struct pool *ask_current(CUdevice device) {
    CUmemoryPool handle;
    unsigned before = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
    if (REAL(cuDeviceGetMemPool)(&handle, device) != CUDA_SUCCESS) return NULL;
    struct pool *pool = pools_find(handle);
    if (!pool) pool = add_on(handle, device, false, false);
    if (device >= DEVICES) return pool;
    __atomic_store_n(&current[device], pool, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&changes, __ATOMIC_SEQ_CST) != before)
        __atomic_store_n(&current[device], NULL, __ATOMIC_SEQ_CST);
    return pool;
}

static bool find_current_device(CUdevice *device) {
    *device = 0;
    return cards_is_single() || (REAL(cuCtxGetDevice)(device) == CUDA_SUCCESS && *device >= 0);
}

static struct pool *known_on(CUdevice device) {
    return device < DEVICES ? __atomic_load_n(&current[device], __ATOMIC_ACQUIRE) : NULL;
}

void current_pools_note_choice(void) {
    __atomic_store_n(&was_chosen, true, __ATOMIC_SEQ_CST);
    current_pools_invalidate();
}

struct pool *current_pools_cached_default(void) {
    CUdevice device;
    if (__atomic_load_n(&was_chosen, __ATOMIC_RELAXED)) return NULL;
    return find_current_device(&device) ? known_on(device) : NULL;
}

struct pool *current_pools_get(void) {
    CUdevice device;
    if (!find_current_device(&device)) return NULL;
    struct pool *pool = known_on(device);
    return pool ? pool : ask_current(device);
}
