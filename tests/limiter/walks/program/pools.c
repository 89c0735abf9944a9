/* Stream-ordered memory: the default pool, pools of a walker's own, pools that are shared. */
#include <unistd.h>

#include "walk.h"

static size_t size(struct walker *walker) {
    return next(walker, 3) ? 1 + next(walker, 200000) : MIB * (1 + next(walker, 6));
}

static CUstream any_stream(struct walker *walker) { return walker->home->tracks[next(walker, STREAMS)].stream; }

static CUmemPoolProps properties(const struct home *home) {
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = home->device}};
}

static void async(struct walker *walker) {
    CUdeviceptr *place = &walker->home->async[next(walker, KEPT)];
    if (*place) {
        DO(walker, cuMemFreeAsync, *place, any_stream(walker));
        *place = 0;
    } else if (DO(walker, cuMemAllocAsync, place, size(walker), any_stream(walker)) != CUDA_SUCCESS) {
        *place = 0;
    }
}

static void end_pool(struct walker *walker, struct pooled *place) {
    if (place->pointer) DO(walker, cuMemFreeAsync, place->pointer, NULL);
    DO(walker, cuMemPoolDestroy, place->pool);
    *place = (struct pooled){0};
}

static void pooled(struct walker *walker) {
    struct pooled *place = &walker->home->pooled[next(walker, KEPT)];
    CUmemPoolProps wanted = properties(walker->home);
    cuuint64_t threshold = next(walker, 2) ? 0 : 64 * MIB;
    if (place->pool) {
        end_pool(walker, place);
        return;
    }
    if (next(walker, 3) == 0) {
        wanted.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
        wanted.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    }
    if (DO(walker, cuMemPoolCreate, &place->pool, &wanted) != CUDA_SUCCESS) return;
    DO(walker, cuMemPoolSetAttribute, place->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    CUresult result = DO(walker, cuMemAllocFromPoolAsync, &place->pointer, size(walker), place->pool, NULL);
    if (result != CUDA_SUCCESS) place->pointer = 0;
}

/* The other card gets access to a pool, or loses it. */
static void grant(struct walker *walker) {
    const struct pooled *own = &walker->home->pooled[next(walker, KEPT)];
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = !walker->home->device},
                              .flags = next(walker, 2) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0};
    if (own->pool) DO(walker, cuMemPoolSetAccess, own->pool, &access, 1);
}

static void trim(struct walker *walker) {
    CUmemoryPool pool;
    const struct pooled *own = &walker->home->pooled[next(walker, KEPT)];
    if (own->pool) DO(walker, cuMemPoolTrimTo, own->pool, 0);
    DO(walker, cuDeviceGetDefaultMemPool, &pool, walker->home->device);
    DO(walker, cuMemPoolTrimTo, pool, MIB * next(walker, 64));
}

/* Other threads may allocate from the pool while it is current. */
static void current(struct walker *walker) {
    struct pooled mine = {0};
    CUmemPoolProps wanted = properties(walker->home);
    CUmemoryPool before;
    if (DO(walker, cuMemPoolCreate, &mine.pool, &wanted) != CUDA_SUCCESS) return;
    DO(walker, cuDeviceSetMemPool, walker->home->device, mine.pool);
    if (DO(walker, cuMemAllocAsync, &mine.pointer, size(walker), NULL) == CUDA_SUCCESS)
        DO(walker, cuMemFreeAsync, mine.pointer, NULL);
    DO(walker, cuDeviceGetDefaultMemPool, &before, walker->home->device);
    DO(walker, cuDeviceSetMemPool, walker->home->device, before);
    DO(walker, cuMemPoolDestroy, mine.pool);
}

static void shared(struct walker *walker) {
    CUmemPoolProps wanted = properties(walker->home);
    CUmemPoolPtrExportData data;
    CUmemoryPool mine, theirs;
    CUdeviceptr pointer, taken;
    int file;
    if (DO(walker, cuMemPoolCreate, &mine, &wanted) != CUDA_SUCCESS) return;
    if (DO(walker, cuMemAllocFromPoolAsync, &pointer, size(walker), mine, NULL) == CUDA_SUCCESS) {
        DO(walker, cuMemPoolExportToShareableHandle, &file, mine, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        DO(walker, cuMemPoolExportPointer, &data, pointer);
        DO(walker, cuMemPoolImportFromShareableHandle, &theirs, (void *)(intptr_t)file,
           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        close(file);
        if (DO(walker, cuMemPoolImportPointer, &taken, theirs, &data) == CUDA_SUCCESS)
            DO(walker, cuMemFreeAsync, taken, NULL);
        DO(walker, cuMemFreeAsync, pointer, NULL);
        DO(walker, cuMemPoolDestroy, theirs);
    }
    DO(walker, cuMemPoolDestroy, mine);
}

const struct step pool_steps[] = {
    {"async", async, 10}, {"pooled", pooled, 3}, {"pool trim", trim, 2}, {"grant", grant, 1}, {"current", current, 1}, {"shared pool", shared, 2},
    {NULL, NULL, 0},
};

void pools_free(struct walker *walker, struct home *home) {
    for (unsigned i = 0; i < KEPT; i++) {
        if (home->async[i]) DO(walker, cuMemFreeAsync, home->async[i], NULL);
        home->async[i] = 0;
        if (home->pooled[i].pool) end_pool(walker, &home->pooled[i]);
    }
}
