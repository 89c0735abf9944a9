/* Memory of one context: linear, pitched, managed, host, physical, mapped, arrays; copies; wrong calls. */
#include <string.h>
#include <unistd.h>

#include "walk.h"

#define PLACE(walker, list) (&(walker)->home->list[next(walker, KEPT)])

/* Frees the object of a place, or makes one. */
#define TOGGLE(walker, place, free, make)                                 \
    do {                                                                  \
        if (*(place)) {                                                   \
            free;                                                         \
            memset((place), 0, sizeof *(place));                          \
        } else if ((make) != CUDA_SUCCESS) {                              \
            memset((place), 0, sizeof *(place));                          \
        }                                                                 \
    } while (0)

static size_t size(struct walker *walker) {
    return next(walker, 3) ? 1 + next(walker, 200000) : MIB * (1 + next(walker, 6));
}

static CUmemAllocationProp properties(const struct home *home) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = home->device}};
}

static void plain(struct walker *walker) {
    CUdeviceptr *place = PLACE(walker, plain);
    size_t pitch;
    unsigned kind = next(walker, 4);
    if (kind == 0)
        TOGGLE(walker, place, DO(walker, cuMemFree_v2, *place),
               DO(walker, cuMemAllocPitch_v2, place, &pitch, 1 + next(walker, 4000), 64, 4));
    else if (kind == 1)
        TOGGLE(walker, place, DO(walker, cuMemFree_v2, *place),
               DO(walker, cuMemAllocManaged, place, size(walker), CU_MEM_ATTACH_GLOBAL));
    else
        TOGGLE(walker, place, DO(walker, cuMemFree_v2, *place), DO(walker, cuMemAlloc_v2, place, size(walker)));
}

static void host(struct walker *walker) {
    void **place = PLACE(walker, host);
    TOGGLE(walker, place, DO(walker, cuMemFreeHost, *place), DO(walker, cuMemHostAlloc, place, 1 + next(walker, 9999), 0));
}

static void physical(struct walker *walker) {
    CUmemGenericAllocationHandle *place = PLACE(walker, physical);
    CUmemAllocationProp wanted = properties(walker->home);
    TOGGLE(walker, place, DO(walker, cuMemRelease, *place),
           DO(walker, cuMemCreate, place, 2 * MIB * (1 + next(walker, 2)), &wanted, 0));
}

static void unmap(struct walker *walker, struct mapped *place) {
    DO(walker, cuMemUnmap, place->address, 2 * MIB);
    DO(walker, cuMemAddressFree, place->address, 2 * MIB);
    if (place->physical) DO(walker, cuMemRelease, place->physical);
    *place = (struct mapped){0};
}

static void mapped(struct walker *walker) {
    struct mapped *place = PLACE(walker, mapped);
    CUmemAllocationProp wanted = properties(walker->home);
    CUmemAccessDesc access = {.location = wanted.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    bool keeps = next(walker, 2) == 0;
    if (place->address) {
        unmap(walker, place);
        return;
    }
    if (DO(walker, cuMemCreate, &place->physical, 2 * MIB, &wanted, 0) != CUDA_SUCCESS) return;
    DO(walker, cuMemAddressReserve, &place->address, 2 * MIB, 0, 0, 0);
    DO(walker, cuMemMap, place->address, 2 * MIB, 0, place->physical, 0);
    DO(walker, cuMemSetAccess, place->address, 2 * MIB, &access, 1);
    if (keeps) return;
    DO(walker, cuMemRelease, place->physical);
    place->physical = 0;
}

/* Exported and imported in this process, as between two. */
static void shared(struct walker *walker) {
    CUmemGenericAllocationHandle made, imported = 0;
    CUmemAllocationProp wanted = properties(walker->home);
    int file = -1;
    if (DO(walker, cuMemCreate, &made, 2 * MIB, &wanted, 0) != CUDA_SUCCESS) return;
    if (DO(walker, cuMemExportToShareableHandle, &file, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
        CUDA_SUCCESS) {
        CUresult result = DO(walker, cuMemImportFromShareableHandle, &imported, (void *)(intptr_t)file,
                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        close(file);
        DO(walker, cuMemRelease, made);
        if (result == CUDA_SUCCESS) DO(walker, cuMemRelease, imported);
        return;
    }
    DO(walker, cuMemRelease, made);
}

static void array(struct walker *walker) {
    CUarray *place = PLACE(walker, array);
    CUDA_ARRAY3D_DESCRIPTOR wanted = {.Width = 64 + next(walker, 1000),
                                      .Height = 1 + next(walker, 200),
                                      .Depth = next(walker, 3),
                                      .Format = CU_AD_FORMAT_FLOAT,
                                      .NumChannels = 4};
    TOGGLE(walker, place, DO(walker, cuArrayDestroy, *place), DO(walker, cuArray3DCreate_v2, place, &wanted));
}

static void mipmap(struct walker *walker) {
    CUmipmappedArray *place = PLACE(walker, mipmap);
    CUDA_ARRAY3D_DESCRIPTOR wanted = {
        .Width = 512, .Height = 1 + next(walker, 500), .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    TOGGLE(walker, place, DO(walker, cuMipmappedArrayDestroy, *place),
           DO(walker, cuMipmappedArrayCreate, place, &wanted, 1 + next(walker, 8)));
}

static void copy(struct walker *walker) {
    static const char bytes[64];
    char into[64];
    const CUdeviceptr *from = PLACE(walker, plain), *to = PLACE(walker, plain);
    CUstream stream = walker->home->tracks[next(walker, STREAMS)].stream;
    unsigned kind = next(walker, 6);
    if (!*from || !*to) return;
    if (kind == 0) DO(walker, cuMemcpyHtoD_v2, *to, bytes, 1);
    if (kind == 1) DO(walker, cuMemcpyDtoH_v2, into, *from, 1);
    if (kind == 2) DO(walker, cuMemcpyHtoDAsync_v2, *to, bytes, 1, stream);
    if (kind == 3) DO(walker, cuMemcpyDtoDAsync_v2, *to, *from, 1, stream);
    if (kind == 4) DO(walker, cuMemsetD8Async, *to, 1, 1, stream);
    if (kind == 5 && walker->home->host[0]) DO(walker, cuMemcpyDtoHAsync_v2, walker->home->host[0], *from, 1, stream);
}

static void ask(struct walker *walker) {
    size_t free = 0, total = 0;
    CUdeviceptr base;
    DO(walker, cuMemGetInfo_v2, &free, &total);
    if (free > total) complain(walker, "more free than there is", (long)free);
    DO(walker, cuDeviceTotalMem_v2, &total, walker->home->device);
    CUdeviceptr known = *PLACE(walker, plain);
    if (known) DO(walker, cuMemGetAddressRange_v2, &base, &total, known);
}

/* Calls that fail without the library, too. */
static void mistake(struct walker *walker) {
    CUdeviceptr pointer = 0;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp wanted = properties(walker->home);
    switch (next(walker, 8)) {
        case 0:
            DO(walker, cuMemAlloc_v2, &pointer, 0);
            return;
        case 1:
            DO(walker, cuMemAlloc_v2, NULL, 100);
            return;
        case 2:
            DO(walker, cuMemFree_v2, 12345);
            return;
        case 3:
            DO(walker, cuMemAlloc_v2, &pointer, UINT64_C(1) << 60);
            return;
        case 4:
            DO(walker, cuMemCreate, &handle, 1, &wanted, 0);
            return;
        case 5:
            DO(walker, cuMemUnmap, 4096, 2 * MIB);
            return;
        case 6:
            DO(walker, cuMemRelease, 77);
            return;
        default:
            DO(walker, cuArrayDestroy, NULL);
    }
}

const struct step memory_steps[] = {
    {"plain", plain, 10}, {"host", host, 2}, {"physical", physical, 3}, {"mapped", mapped, 4}, {"shared", shared, 2},
    {"array", array, 3},  {"mipmap", mipmap, 2}, {"copy", copy, 5},     {"ask", ask, 3},       {"mistake", mistake, 2},
    {NULL, NULL, 0},
};

void memory_free(struct walker *walker, struct home *home) {
    for (unsigned i = 0; i < KEPT; i++) {
        if (home->plain[i]) DO(walker, cuMemFree_v2, home->plain[i]);
        if (home->host[i]) DO(walker, cuMemFreeHost, home->host[i]);
        if (home->array[i]) DO(walker, cuArrayDestroy, home->array[i]);
        if (home->mipmap[i]) DO(walker, cuMipmappedArrayDestroy, home->mipmap[i]);
        if (home->physical[i]) DO(walker, cuMemRelease, home->physical[i]);
        if (home->mapped[i].address) unmap(walker, &home->mapped[i]);
        home->plain[i] = 0;
        home->host[i] = NULL;
        home->array[i] = NULL;
        home->mipmap[i] = NULL;
        home->physical[i] = 0;
    }
}
