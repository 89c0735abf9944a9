/* Memory of a graph's allocation node, taken at the launch or at the upload before it. */
#include "classes.h"

static bool build(struct holding *held) {
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
        .bytesize = held->bytes,
    };
    if (!DO(cuGraphCreate, &held->graph, 0)) return false;
    bool built = DO(cuGraphAddMemAllocNode, &node, held->graph, NULL, 0, &memory) &&
                 DO(cuGraphInstantiateWithFlags, &held->executable, held->graph, 0);
    held->pointer = memory.dptr;
    if (!built) DO(cuGraphDestroy, held->graph);
    return built;
}

static void drop(struct holding *held) {
    DO(cuGraphExecDestroy, held->executable);
    DO(cuGraphDestroy, held->graph);
    DO(cuDeviceGraphMemTrim, 0);
}

static bool launch(struct holding *held) {
    if (DO(cuGraphLaunch, held->executable, NULL) && DO(cuCtxSynchronize)) return true;
    drop(held);
    return false;
}

static bool take_launched(struct holding *held) { return build(held) && launch(held); }

static bool take_uploaded(struct holding *held) {
    if (!build(held)) return false;
    if (DO(cuGraphUpload, held->executable, NULL) && DO(cuCtxSynchronize)) return launch(held);
    drop(held);
    return false;
}

static void give(struct holding *held) {
    DO(cuMemFreeAsync, held->pointer, NULL);
    DO(cuCtxSynchronize);
    drop(held);
}

const struct class graph_classes[] = {
    {"graph", take_launched, give},
    {"graph uploaded", take_uploaded, give},
    {0},
};
