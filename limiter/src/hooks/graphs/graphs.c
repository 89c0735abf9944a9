/* Graphs: their kernels' local memory is taken when they are instantiated (local.h), the memory of their own
 * allocations when they are uploaded or launched (graph_memory.h). */
#include "books/graph_needs.h"
#include "charge/attempt.h"
#include "charge/local_memory.h"
#include "compute/launch_gate.h"
#include "compute/turn_events.h"
#include "compute/turn_need.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/graphs/graph_memory.h"
#include "hooks/graphs/graph_plan.h"

static void note(CUgraphExec ready, const struct graph_plan *plan) {
    uint64_t bytes[REGION_CARDS];
    for (int device = 0; device < REGION_CARDS; device++) bytes[device] = plan->blocks[device].sum;
    graph_needs_put((uint64_t)ready, bytes, plan->left != 0);
}

/* The rest of a body that makes a graph ready to be launched, after which it is `*ready`. */
#define MAKE_READY(name, ready, graph, ...)                                      \
    do {                                                                         \
        struct graph_plan plan;                                                  \
        if (!container_is_limited() || !(ready)) return REAL(name)(__VA_ARGS__); \
        graph_plan_read(graph, &plan);                                           \
        struct attempt attempt = local_memory_begin_launch(#name, plan.local);   \
        if (attempt.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;                 \
        CUresult result;                                                         \
        do result = REAL(name)(__VA_ARGS__);                                     \
        while (attempt_retry(&attempt, result));                                 \
        if (result == CUDA_SUCCESS) note(*(ready), &plan);                       \
        return local_memory_end_launch(&attempt, result);                        \
    } while (0)

EXPORT CUresult cuGraphInstantiate(CUgraphExec *ready, CUgraph graph, CUgraphNode *error, char *log, size_t size) {
    MAKE_READY(cuGraphInstantiate, ready, graph, ready, graph, error, log, size);
}

EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *ready, CUgraph graph, CUgraphNode *error, char *log, size_t size) {
    MAKE_READY(cuGraphInstantiate_v2, ready, graph, ready, graph, error, log, size);
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *ready, CUgraph graph, unsigned long long flags) {
    MAKE_READY(cuGraphInstantiateWithFlags, ready, graph, ready, graph, flags);
}

static CUresult with_parameters(CUgraphExec *ready, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    MAKE_READY(cuGraphInstantiateWithParams, ready, graph, ready, graph, parameters);
}

static CUresult with_parameters_ptsz(CUgraphExec *ready, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    MAKE_READY(cuGraphInstantiateWithParams_ptsz, ready, graph, ready, graph, parameters);
}

/* What failed in the upload failed in the call. */
static CUresult undo(CUgraphExec ready, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters, CUresult result) {
    cuGraphExecDestroy(ready);
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

/* With the flag for it, the graph is uploaded in the same call: here in the next one, which is held to the limit. */
#define INSTANTIATE(instantiate, upload, ready, graph, parameters)                        \
    do {                                                                                  \
        if (!(parameters) || !((parameters)->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) \
            return instantiate(ready, graph, parameters);                                 \
        (parameters)->flags &= ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;           \
        CUresult result = instantiate(ready, graph, parameters);                          \
        (parameters)->flags |= CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;                        \
        if (result != CUDA_SUCCESS) return result;                                        \
        result = upload(*(ready), (parameters)->hUploadStream);                           \
        return result == CUDA_SUCCESS ? result : undo(*(ready), parameters, result);      \
    } while (0)

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *ready, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    INSTANTIATE(with_parameters, cuGraphUpload, ready, graph, parameters);
}

EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *ready, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    INSTANTIATE(with_parameters_ptsz, cuGraphUpload_ptsz, ready, graph, parameters);
}

EXPORT CUresult cuGraphExecUpdate(CUgraphExec ready, CUgraph graph, CUgraphNode *error, CUgraphExecUpdateResult *what) {
    MAKE_READY(cuGraphExecUpdate, &ready, graph, ready, graph, error, what);
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec ready, CUgraph graph, CUgraphExecUpdateResultInfo *what) {
    MAKE_READY(cuGraphExecUpdate_v2, &ready, graph, ready, graph, what);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec ready, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v1 *kernel) {
    LAUNCH_WITH_LOCAL_MEMORY(kernel ? kernel->func : NULL, cuGraphExecKernelNodeSetParams, ready, node, kernel);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec ready, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS_v2 *kernel) {
    LAUNCH_WITH_LOCAL_MEMORY(kernel ? graph_plan_function(kernel->func, kernel->kern) : NULL,
                             cuGraphExecKernelNodeSetParams_v2, ready, node, kernel);
}

EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec ready, CUgraphNode node, CUgraphNodeParams *of) {
    bool is_kernel = of && of->type == CU_GRAPH_NODE_TYPE_KERNEL;
    LAUNCH_WITH_LOCAL_MEMORY(is_kernel ? graph_plan_function(of->kernel.func, of->kernel.kern) : NULL,
                             cuGraphExecNodeSetParams, ready, node, of);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec ready) {
    graph_needs_remove((uint64_t)ready);
    return REAL(cuGraphExecDestroy)(ready);
}

typedef CUresult (*run_function)(CUgraphExec, CUstream);

/* A graph that may have allocations of its own, and on several devices. */
static CUresult run(const char *what, run_function real, run_function upload, CUgraphExec ready, CUstream stream) {
    struct graph_calls calls;
    if (!graph_memory_begin(what, ready, &calls)) return CUDA_ERROR_OUT_OF_MEMORY;
    bool is_tried = !graph_memory_is_sure(&calls) && upload(ready, stream) == CUDA_SUCCESS;
    CUresult result = is_tried && !graph_memory_fits(&calls) ? CUDA_ERROR_OUT_OF_MEMORY : real(ready, stream);
    graph_memory_end(&calls);
    return result;
}

#define RUN(name, upload, ready, stream) \
    return graph_needs_any() ? run(#name, REAL(name), REAL(upload), ready, stream) : REAL(name)(ready, stream)

EXPORT CUresult cuGraphUpload(CUgraphExec ready, CUstream stream) { RUN(cuGraphUpload, cuGraphUpload, ready, stream); }

EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec ready, CUstream stream) {
    RUN(cuGraphUpload_ptsz, cuGraphUpload_ptsz, ready, stream);
}

static CUresult launch(CUgraphExec ready, CUstream stream) { RUN(cuGraphLaunch, cuGraphUpload, ready, stream); }

static CUresult launch_ptsz(CUgraphExec ready, CUstream stream) {
    RUN(cuGraphLaunch_ptsz, cuGraphUpload_ptsz, ready, stream);
}

/* A graph's launch may have to wait, as a kernel's (gate.h). */
#define LAUNCH_GRAPH(launch, ready, stream, named)                                        \
    do {                                                                                  \
        if (!turn_need_is_any()) return launch(ready, stream);                            \
        struct launch_pass pass = launch_gate_enter(launch_gate_graph_key(ready), named); \
        CUresult result = launch(ready, stream);                                          \
        launch_gate_leave(&pass);                                                         \
        return result;                                                                    \
    } while (0)

EXPORT CUresult cuGraphLaunch(CUgraphExec ready, CUstream stream) {
    LAUNCH_GRAPH(launch, ready, stream, LEGACY(stream));
}

EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec ready, CUstream stream) {
    LAUNCH_GRAPH(launch_ptsz, ready, stream, PER_THREAD(stream));
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    if (!graph_needs_any()) return REAL(cuDeviceGraphMemTrim)(device);
    struct graph_calls calls;
    graph_memory_look("cuDeviceGraphMemTrim", device, &calls);
    CUresult result = REAL(cuDeviceGraphMemTrim)(device);
    graph_memory_end(&calls);
    return result;
}
