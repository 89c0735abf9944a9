/* Graphs: built node by node or captured, with kernels and memory; instantiated, launched, ended. */
#include <string.h>

#include "walk.h"

static CUfunction kernel_of(struct walker *walker) {
    const struct home *home = walker->home;
    return home->module ? home->kernels[next(walker, 2)] : NULL;
}

static void run(void *data) { __atomic_fetch_add((uint32_t *)data, 1, __ATOMIC_RELAXED); }

static uint32_t runs; /* atomic: functions that graphs called */

static bool add_kernels(struct walker *walker, CUgraph graph, CUgraphNode *last) {
    CUgraphNode node = NULL;
    CUDA_KERNEL_NODE_PARAMS wanted = {.func = kernel_of(walker),
                                      .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                      .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    if (!wanted.func) return false;
    for (unsigned i = 1 + next(walker, 5); i > 0; i--)
        DO(walker, cuGraphAddKernelNode_v2, &node, graph, node ? &node : NULL, node ? 1 : 0, &wanted);
    *last = node;
    CUDA_HOST_NODE_PARAMS call = {run, &runs};
    if (next(walker, 2)) DO(walker, cuGraphAddHostNode, &node, graph, &node, 1, &call);
    return true;
}

static void add_memory(struct walker *walker, CUgraph graph) {
    CUgraphNode first, second;
    CUDA_MEM_ALLOC_NODE_PARAMS wanted = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = walker->home->device}},
        .bytesize = 1 + next(walker, 3000000)};
    DO(walker, cuGraphAddMemAllocNode, &first, graph, NULL, 0, &wanted);
    DO(walker, cuGraphAddMemFreeNode, &second, graph, &first, 1, wanted.dptr);
}

static bool capture(struct walker *walker, CUgraph *graph) {
    CUstream stream = NULL;
    CUfunction kernel = kernel_of(walker);
    CUdeviceptr pointer;
    if (!kernel || DO(walker, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
    DO(walker, cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    for (unsigned i = 1 + next(walker, 4); i > 0; i--)
        DO(walker, cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    if (next(walker, 2) && DO(walker, cuMemAllocAsync, &pointer, 1 + next(walker, 100000), stream) == CUDA_SUCCESS)
        DO(walker, cuMemFreeAsync, pointer, stream);
    CUresult result = DO(walker, cuStreamEndCapture, stream, graph);
    DO(walker, cuStreamDestroy_v2, stream);
    return result == CUDA_SUCCESS && *graph;
}

static void end(struct walker *walker, struct graph *place) {
    if (place->ready) DO(walker, cuGraphExecDestroy, place->ready);
    if (place->graph) DO(walker, cuGraphDestroy, place->graph);
    *place = (struct graph){0};
}

static void make(struct walker *walker) {
    struct graph *place = &walker->home->graphs[next(walker, GRAPHS)];
    if (place->graph) {
        end(walker, place);
        return;
    }
    if (next(walker, 2) == 0) {
        if (!capture(walker, &place->graph)) place->graph = NULL;
    } else if (DO(walker, cuGraphCreate, &place->graph, 0) == CUDA_SUCCESS) {
        add_kernels(walker, place->graph, &place->kernel);
        if (next(walker, 3) == 0) add_memory(walker, place->graph);
    }
    if (place->graph && DO(walker, cuGraphInstantiateWithFlags, &place->ready, place->graph, 0) != CUDA_SUCCESS)
        place->ready = NULL;
}

/* From another graph, which may have another form. */
static void update(struct walker *walker) {
    const struct graph *place = &walker->home->graphs[next(walker, GRAPHS)];
    CUgraphExecUpdateResultInfo info;
    CUgraph other;
    CUgraphNode last;
    if (!place->ready || DO(walker, cuGraphCreate, &other, 0) != CUDA_SUCCESS) return;
    add_kernels(walker, other, &last);
    CUresult result = DO(walker, cuGraphExecUpdate_v2, place->ready, other, &info);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        note(walker, "update", (CUresult)info.result);
    DO(walker, cuGraphDestroy, other);
}

static void change_kernel(struct walker *walker) {
    struct graph *place = &walker->home->graphs[next(walker, GRAPHS)];
    CUDA_KERNEL_NODE_PARAMS wanted = {.func = kernel_of(walker),
                                      .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1,
                                      .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    if (!place->ready || !wanted.func || !place->kernel) return;
    if (next(walker, 2)) DO(walker, cuGraphKernelNodeSetParams_v2, place->kernel, &wanted);
    DO(walker, cuGraphExecKernelNodeSetParams_v2, place->ready, place->kernel, &wanted);
}

static void launch(struct walker *walker) {
    const struct graph *place = &walker->home->graphs[next(walker, GRAPHS)];
    CUstream stream = walker->home->tracks[next(walker, STREAMS)].stream;
    if (!place->ready) return;
    if (next(walker, 4) == 0) DO(walker, cuGraphUpload, place->ready, stream);
    for (unsigned i = 1 + next(walker, 3); i > 0; i--) DO(walker, cuGraphLaunch, place->ready, stream);
}

static void trim(struct walker *walker) { DO(walker, cuDeviceGraphMemTrim, walker->home->device); }

const struct step graph_steps[] = {
    {"graph", make, 4}, {"graph launch", launch, 6}, {"update", update, 3}, {"graph kernel", change_kernel, 3}, {"graph trim", trim, 1}, {NULL, NULL, 0}};

void graphs_free(struct walker *walker, struct home *home) {
    for (unsigned i = 0; i < GRAPHS; i++) end(walker, &home->graphs[i]);
}
