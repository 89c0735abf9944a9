#include "books/pools/current_pools.h"

#include "books/pools/current_pool_cache.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "region/account.h"

/* A new pool has reserved nothing and is charged nothing. The memory of a pool that existed before may already be in a
 * measured charge: its `corrections_when_charged` is set out of date, so that a measurement charges the pool, instead
 * of the difference between what it has reserved and what is charged. */
static struct pool *add_pool(CUmemoryPool handle, CUdevice device, bool is_managed, bool is_new) {
    struct pool added = {.handle = handle, .card = -1, .is_managed = is_managed};
    struct region *region = container_region();
    added.is_counted = cards_of_device(device, added.uuid);
    if (added.is_counted) container_join(added.uuid);
    if (region) added.card = account_find_card(region, added.uuid);
    if (region) added.corrections = account_corrections_field(region, container_slot(region), added.card);
    added.release_threshold = pools_threshold(&added);
    added.last_reserved = is_new ? 0 : pools_reserved(&added);
    if (added.corrections)
        added.corrections_when_charged = __atomic_load_n(added.corrections, __ATOMIC_ACQUIRE) - !is_new;
    return pools_add(handle, &added);
}

void current_pools_learn(CUmemoryPool handle, const CUmemLocation *location, CUmemAllocationType type, bool is_new) {
    static const struct pool on_host = {.card = -1};
    CUdevice device = location->id;
    bool is_managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    bool is_on_card = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (pools_find(handle)) return;
    if (is_on_card || (is_managed && REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS))
        add_pool(handle, device, is_managed, is_new);
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
    return add_pool(handle, device, false, false);
}

static struct pool *query_current(CUdevice device) {
    CUmemoryPool handle;
    unsigned generation = current_pool_cache_generation();
    if (REAL(cuDeviceGetMemPool)(&handle, device) != CUDA_SUCCESS) return NULL;
    struct pool *pool = pools_find(handle);
    if (!pool) pool = add_pool(handle, device, false, false);
    current_pool_cache_put(device, pool, generation);
    return pool;
}

static bool find_current_device(CUdevice *device) {
    *device = 0;
    return cards_is_single() || (REAL(cuCtxGetDevice)(device) == CUDA_SUCCESS && *device >= 0);
}

struct pool *current_pools_cached_default(void) {
    CUdevice device;
    if (current_pool_cache_has_choice()) return NULL;
    return find_current_device(&device) ? current_pool_cache_find(device) : NULL;
}

struct pool *current_pools_get(void) {
    CUdevice device;
    if (!find_current_device(&device)) return NULL;
    struct pool *pool = current_pool_cache_find(device);
    return pool ? pool : query_current(device);
}
