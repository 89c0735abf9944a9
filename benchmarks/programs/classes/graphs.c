/* Memory of a graph's allocation node, allocated by the launch or by an upload. */
#include "classes.h"

static bool build_by_node(struct holding *held) {
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS memory = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
        .bytesize = held->bytes,
    };
    if (!DO(cuGraphCreate, &held->graph, 0)) return false;
    bool built = DO(cuGraphAddMemAllocNode, &node, held->graph, NULL, 0, &memory);
    held->pointer = memory.dptr;
    if (!built) DO(cuGraphDestroy, held->graph);
    return built;
}

/* A captured allocation of a stream becomes an allocation node. */
static bool build_by_capture(struct holding *held) {
    CUstream stream;
    if (!DO(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING)) return false;
    bool built = DO(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED) &&
                 DO(cuMemAllocAsync, &held->pointer, held->bytes, stream) &&
                 DO(cuStreamEndCapture, stream, &held->graph);
    DO(cuStreamDestroy_v2, stream);
    return built;
}

static bool instantiate(struct holding *held) {
    if (DO(cuGraphInstantiateWithFlags, &held->executable, held->graph, 0)) return true;
    DO(cuGraphDestroy, held->graph);
    return false;
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

static bool take_launched(struct holding *held) { return build_by_node(held) && instantiate(held) && launch(held); }

static bool take_captured(struct holding *held) { return build_by_capture(held) && instantiate(held) && launch(held); }

static bool take_uploaded(struct holding *held) {
    if (!build_by_node(held) || !instantiate(held)) return false;
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
    {"graph captured", take_captured, give},
    {0},
};
