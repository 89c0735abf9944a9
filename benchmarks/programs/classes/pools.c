/* Stream-ordered memory: of the device's pool, of a created pool, and of a pool that keeps freed memory. */
#include "classes.h"

static bool make_pool(CUmemoryPool *pool) {
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    return *pool || DO(cuMemPoolCreate, pool, &properties);
}

static CUmemoryPool plain_pool(void) {
    static CUmemoryPool pool;
    return make_pool(&pool) ? pool : NULL;
}

static CUmemoryPool keeping_pool(void) {
    static CUmemoryPool pool;
    cuuint64_t all = UINT64_MAX;
    bool made = pool || (make_pool(&pool) && DO(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    return made ? pool : NULL;
}

static bool take_async(struct holding *held) { return DO(cuMemAllocAsync, &held->pointer, held->bytes, NULL); }

/* A pool gives memory back to the card at a synchronization. */
static void give_async(struct holding *held) {
    DO(cuMemFreeAsync, held->pointer, NULL);
    DO(cuCtxSynchronize);
}

static bool take_async_twin(struct holding *held) {
    return DO(cuMemAllocAsync_ptsz, &held->pointer, held->bytes, NULL);
}

static void give_async_twin(struct holding *held) {
    DO(cuMemFreeAsync_ptsz, held->pointer, NULL);
    DO(cuCtxSynchronize);
}

static bool take_from(CUmemoryPool pool, struct holding *held) {
    return pool && DO(cuMemAllocFromPoolAsync, &held->pointer, held->bytes, pool, NULL);
}

static bool take_from_pool(struct holding *held) { return take_from(plain_pool(), held); }

static bool take_from_keeping_pool(struct holding *held) { return take_from(keeping_pool(), held); }

static void give_and_trim(struct holding *held) {
    give_async(held);
    DO(cuMemPoolTrimTo, keeping_pool(), 0);
}

static bool take_from_pool_twin(struct holding *held) {
    CUmemoryPool pool = plain_pool();
    return pool && DO(cuMemAllocFromPoolAsync_ptsz, &held->pointer, held->bytes, pool, NULL);
}

const struct class pool_classes[] = {
    {"async", take_async, give_async},
    {"async ptsz", take_async_twin, give_async_twin},
    {"pool", take_from_pool, give_async},
    {"pool ptsz", take_from_pool_twin, give_async_twin},
    {"pool that keeps, trimmed", take_from_keeping_pool, give_and_trim},
    {"pool that keeps", take_from_keeping_pool, give_async},
    {0},
};
