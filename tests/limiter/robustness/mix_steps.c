/* The random calls of the threads of mix.c. */
#include "mix.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char PTX[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

unsigned next(struct thread *thread, unsigned most) {
    thread->chance = thread->chance * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(thread->chance >> 33) % most;
}

void expect(const char *what, CUresult result) {
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) return;
    __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
    (void)fprintf(stderr, "%s: %d\n", what, (int)result);
}

static size_t size(struct thread *thread) {
    return next(thread, 3) ? 1 + next(thread, 200000) : MIB * (1 + next(thread, 4));
}

/* Frees the allocation of an entry, or makes one. */
#define TOGGLE(place, free, ...)                             \
    do {                                                     \
        bool is_taken = (place) != 0;                        \
        CUresult result = is_taken ? (free) : (__VA_ARGS__); \
        expect(#__VA_ARGS__, result);                        \
        if (is_taken || result != CUDA_SUCCESS) (place) = 0; \
    } while (0)

static void use_plain(struct thread *thread, CUdeviceptr *place) {
    size_t pitch;
    switch (next(thread, 3)) {
        case 0:
            TOGGLE(*place, cuMemFree_v2(*place), cuMemAlloc_v2(place, size(thread)));
            return;
        case 1:
            TOGGLE(*place, cuMemFree_v2(*place), cuMemAllocPitch_v2(place, &pitch, 1 + next(thread, 4000), 64, 4));
            return;
        default:
            TOGGLE(*place, cuMemFree_v2(*place), cuMemAllocManaged(place, size(thread), CU_MEM_ATTACH_GLOBAL));
    }
}

static void use_physical(struct thread *thread, CUmemGenericAllocationHandle *place) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    TOGGLE(*place, cuMemRelease(*place), cuMemCreate(place, 2 * MIB * (1 + next(thread, 2)), &properties, 0));
}

static void use_array(struct thread *thread, CUarray *place) {
    CUDA_ARRAY_DESCRIPTOR descriptor = {.Width = 64 + next(thread, 1000),
                                        .Height = 1 + next(thread, 200),
                                        .Format = CU_AD_FORMAT_FLOAT,
                                        .NumChannels = 4};
    TOGGLE(*place, cuArrayDestroy(*place), cuArrayCreate_v2(place, &descriptor));
}

void array_step(struct thread *thread) { use_array(thread, &thread->array[next(thread, KEPT)]); }

/* If one of several calls is refused, the earlier ones are undone. */
static void use_mapped(struct mapped *place) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    if (place->address) {
        expect("cuMemUnmap", cuMemUnmap(place->address, 2 * MIB));
        expect("cuMemAddressFree", DRIVER(cuMemAddressFree)(place->address, 2 * MIB));
        place->address = 0;
        return;
    }
    CUresult result = cuMemCreate(&place->physical, 2 * MIB, &properties, 0);
    expect("cuMemCreate", result);
    if (result != CUDA_SUCCESS) return;
    DRIVER(cuMemAddressReserve)(&place->address, 2 * MIB, 0, 0, 0);
    expect("cuMemMap", cuMemMap(place->address, 2 * MIB, 0, place->physical, 0));
    expect("cuMemRelease", cuMemRelease(place->physical));
}

static void use_pool(struct pooled *place) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    if (place->pool) {
        if (place->pointer) expect("cuMemFreeAsync", cuMemFreeAsync(place->pointer, NULL));
        expect("cuMemPoolDestroy", cuMemPoolDestroy(place->pool));
        place->pool = NULL;
        return;
    }
    expect("cuMemPoolCreate", cuMemPoolCreate(&place->pool, &properties));
    CUresult result = cuMemAllocFromPoolAsync(&place->pointer, MIB, place->pool, NULL);
    expect("cuMemAllocFromPoolAsync", result);
    if (result != CUDA_SUCCESS) place->pointer = 0;
}

/* Exports and imports in one process, as between two. */
static void use_shared_pool(void) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemPoolPtrExportData data;
    CUmemoryPool mine, theirs;
    CUdeviceptr pointer, taken = 0;
    int file;
    expect("cuMemPoolCreate", cuMemPoolCreate(&mine, &properties));
    CUresult result = cuMemAllocFromPoolAsync(&pointer, MIB, mine, NULL);
    expect("cuMemAllocFromPoolAsync", result);
    if (result == CUDA_SUCCESS) {
        cuMemPoolExportToShareableHandle(&file, mine, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        expect("cuMemPoolExportPointer", cuMemPoolExportPointer(&data, pointer));
        DRIVER(cuMemPoolImportFromShareableHandle)
        (&theirs, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        close(file);
        expect("cuMemPoolImportPointer", cuMemPoolImportPointer(&taken, theirs, &data));
        if (taken) expect("cuMemFreeAsync of an import", cuMemFreeAsync(taken, NULL));
        expect("cuMemFreeAsync", cuMemFreeAsync(pointer, NULL));
        expect("cuMemPoolTrimTo", cuMemPoolTrimTo(mine, 0));
        expect("cuMemPoolDestroy of an import", cuMemPoolDestroy(theirs));
    }
    expect("cuMemPoolDestroy", cuMemPoolDestroy(mine));
}

/* Another thread may allocate from the pool while it is current, or query it just before it is destroyed. */
static void use_current_pool(void) {
    struct pooled mine = {0};
    CUmemoryPool own;
    use_pool(&mine);
    if (!mine.pool) return;
    expect("cuDeviceSetMemPool", cuDeviceSetMemPool(0, mine.pool));
    CUdeviceptr pointer;
    CUresult result = cuMemAllocAsync(&pointer, MIB, NULL);
    expect("cuMemAllocAsync from what is current", result);
    if (result == CUDA_SUCCESS) expect("cuMemFreeAsync", cuMemFreeAsync(pointer, NULL));
    DRIVER(cuDeviceGetDefaultMemPool)(&own, 0);
    expect("cuDeviceSetMemPool", cuDeviceSetMemPool(0, own));
    use_pool(&mine);
}

static void use_async(struct thread *thread, CUdeviceptr *place) {
    TOGGLE(*place, cuMemFreeAsync(*place, NULL), cuMemAllocAsync(place, size(thread), NULL));
}

void pool_step(struct thread *thread) {
    if (next(thread, 4))
        use_async(thread, &thread->pooled[next(thread, KEPT)]);
    else if (next(thread, 2))
        use_shared_pool();
    else
        use_current_pool();
}

static void launch(CUgraph graph) {
    CUgraphExec ready;
    CUresult result = cuGraphInstantiateWithFlags(&ready, graph, 0);
    expect("cuGraphInstantiateWithFlags", result);
    if (result != CUDA_SUCCESS) return;
    expect("cuGraphLaunch", cuGraphLaunch(ready, NULL));
    expect("cuGraphExecDestroy", cuGraphExecDestroy(ready));
}

static void use_graph(struct thread *thread) {
    CUgraph graph;
    CUgraphNode first, second;
    CUDA_MEM_ALLOC_NODE_PARAMS wanted = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = size(thread)};
    DRIVER(cuGraphCreate)(&graph, 0);
    expect("cuGraphAddMemAllocNode", DRIVER(cuGraphAddMemAllocNode)(&first, graph, NULL, 0, &wanted));
    expect("cuGraphAddMemFreeNode", DRIVER(cuGraphAddMemFreeNode)(&second, graph, &first, 1, wanted.dptr));
    launch(graph);
    DRIVER(cuGraphDestroy)(graph);
}

static void use_kernel(CUmodule module, CUstream stream) {
    CUfunction function;
    if (!module) return;
    expect("cuModuleGetFunction", cuModuleGetFunction(&function, module, "nothing"));
    expect("cuLaunchKernel", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

static void use_other_context(void) {
    CUcontext other;
    CUmodule module = NULL;
    CUresult result = cuCtxCreate_v2(&other, 0, 0);
    expect("cuCtxCreate_v2", result);
    if (result == CUDA_SUCCESS) {
        expect("cuModuleLoadData", cuModuleLoadData(&module, PTX));
        use_kernel(module, NULL);
        expect("cuCtxDestroy_v2", cuCtxDestroy_v2(other));
    }
    DRIVER(cuCtxSetCurrent)(context);
}

/* A kernel whose time is unknown, in a turn in which another thread's may be unknown too. */
static void use_new_kernel(CUstream stream) {
    CUmodule module;
    CUresult result = cuModuleLoadData(&module, PTX);
    expect("cuModuleLoadData", result);
    if (result != CUDA_SUCCESS) return;
    use_kernel(module, stream);
    expect("cuModuleUnload", cuModuleUnload(module));
}

void launch_step(struct thread *thread) {
    unsigned place = next(thread, KEPT);
    if (!thread->module[0]) expect("cuModuleLoadData", cuModuleLoadData(&thread->module[0], PTX));
    switch (next(thread, 40)) {
        case 0:
            use_other_context();
            return;
        case 1:
            use_graph(thread);
            return;
        case 2:
            expect("cuCtxSynchronize", cuCtxSynchronize());
            return;
        case 3:
            TOGGLE(thread->stream[place], cuStreamDestroy_v2(thread->stream[place]),
                   cuStreamCreate(&thread->stream[place], CU_STREAM_NON_BLOCKING));
            return;
        case 4:
        case 5:
            use_new_kernel(thread->stream[place]);
            return;
        case 6:
        case 7:
        case 8:
            expect("cuStreamSynchronize", cuStreamSynchronize(thread->stream[place]));
            return;
        default:
            use_kernel(thread->module[0], thread->stream[place]);
    }
}

/* The child has no context, and all locks that other threads hold at the fork must be free in it. */
static void use_fork(struct thread *thread) {
    size_t free, total;
    if (next(thread, 10)) return;
    pid_t child = fork();
    if (child == 0) _exit(cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) expect("a child's cuMemGetInfo_v2", CUDA_ERROR_UNKNOWN);
}

static void ask(struct thread *thread) {
    size_t free, total;
    nvmlMemory_t memory;
    nvmlProcessInfo_t listed[64];
    unsigned count = 64;
    CUcontext other;
    switch (next(thread, 4)) {
        case 0:
            expect("cuMemGetInfo_v2", cuMemGetInfo_v2(&free, &total));
            if (free > total) expect("more free than there is", CUDA_ERROR_UNKNOWN);
            return;
        case 1:
            nvmlDeviceGetMemoryInfo(card, &memory);
            return;
        case 2:
            nvmlDeviceGetComputeRunningProcesses_v3(card, &count, listed);
            return;
        default:
            if (next(thread, 20)) return;
            CUresult result = cuCtxCreate_v2(&other, 0, 0);
            expect("cuCtxCreate_v2", result);
            if (result == CUDA_SUCCESS) expect("cuCtxDestroy_v2", cuCtxDestroy_v2(other));
            DRIVER(cuCtxSetCurrent)(context);
    }
}

void step(struct thread *thread) {
    unsigned place = next(thread, KEPT);
    switch (next(thread, 12)) {
        case 0:
            use_async(thread, &thread->pooled[place]);
            return;
        case 1:
            TOGGLE(thread->module[place], cuModuleUnload(thread->module[place]),
                   cuModuleLoadData(&thread->module[place], PTX));
            return;
        case 2:
            use_physical(thread, &thread->physical[place]);
            return;
        case 3:
            use_array(thread, &thread->array[place]);
            return;
        case 4:
            use_mapped(&thread->mapped[place]);
            return;
        case 5:
            if (next(thread, 4))
                use_pool(&thread->pools[place]);
            else if (next(thread, 2))
                use_shared_pool();
            else
                use_current_pool();
            return;
        case 6:
            use_graph(thread);
            return;
        case 7:
            use_kernel(thread->module[place], NULL);
            return;
        case 8:
            use_fork(thread);
            return;
        case 9:
            ask(thread);
            return;
        default:
            use_plain(thread, &thread->plain[place]);
    }
}

void free_all(struct thread *thread) {
    for (unsigned i = 0; i < KEPT; i++) {
        if (thread->plain[i]) expect("cuMemFree_v2", cuMemFree_v2(thread->plain[i]));
        if (thread->pooled[i]) expect("cuMemFreeAsync", cuMemFreeAsync(thread->pooled[i], NULL));
        if (thread->physical[i]) expect("cuMemRelease", cuMemRelease(thread->physical[i]));
        if (thread->array[i]) expect("cuArrayDestroy", cuArrayDestroy(thread->array[i]));
        if (thread->mapped[i].address) use_mapped(&thread->mapped[i]);
        if (thread->pools[i].pool) use_pool(&thread->pools[i]);
        if (thread->stream[i]) expect("cuStreamDestroy_v2", cuStreamDestroy_v2(thread->stream[i]));
        if (thread->module[i]) expect("cuModuleUnload", cuModuleUnload(thread->module[i]));
    }
}
