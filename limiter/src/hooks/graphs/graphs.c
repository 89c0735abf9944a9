/* Wrappers of graphs. The driver takes local memory of their kernels when they are instantiated
 * (charge/measure/local_memory.h), and memory for their own allocations when they are uploaded or launched
 * (graph_memory.h). */
#include "books/graphs/graph_needs.h"
#include "charge/measure/local_memory.h"
#include "charge/reserve/attempt.h"
#include "compute/launch_gate.h"
#include "compute/turn_events.h"
#include "compute/turn_need.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/graphs/graph_memory.h"
#include "hooks/graphs/graph_plan.h"

static void record_needs(CUgraphExec executable, const struct graph_plan *plan) {
    uint64_t bytes[REGION_CARDS];
    for (int device = 0; device < REGION_CARDS; device++) bytes[device] = plan->blocks[device].sum;
    graph_needs_put((uint64_t)executable, bytes, plan->unfreed_addresses != 0);
}

/* Body of a wrapper that instantiates or updates an executable graph: reserves the local memory of its kernels, and
 * records the need of its own allocations. The variadic arguments are the real function's. */
#define CALL_WITH_PLAN(name, executable, graph, ...)                                  \
    do {                                                                              \
        struct graph_plan plan;                                                       \
        if (!container_is_limited() || !(executable)) return REAL(name)(__VA_ARGS__); \
        graph_plan_read(graph, &plan);                                                \
        struct attempt attempt = local_memory_begin_launch(#name, plan.local_growth); \
        if (attempt.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;                      \
        CUresult result;                                                              \
        do result = REAL(name)(__VA_ARGS__);                                          \
        while (attempt_retry(&attempt, result));                                      \
        if (result == CUDA_SUCCESS) record_needs(*(executable), &plan);               \
        return local_memory_end_launch(&attempt, result);                             \
    } while (0)

EXPORT CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph graph, CUgraphNode *error, char *log, size_t size) {
    CALL_WITH_PLAN(cuGraphInstantiate, executable, graph, executable, graph, error, log, size);
}

EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *executable, CUgraph graph, CUgraphNode *error, char *log,
                                      size_t size) {
    CALL_WITH_PLAN(cuGraphInstantiate_v2, executable, graph, executable, graph, error, log, size);
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags) {
    CALL_WITH_PLAN(cuGraphInstantiateWithFlags, executable, graph, executable, graph, flags);
}

static CUresult instantiate_with_parameters(CUgraphExec *executable, CUgraph graph,
                                            CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    CALL_WITH_PLAN(cuGraphInstantiateWithParams, executable, graph, executable, graph, parameters);
}

static CUresult instantiate_with_parameters_ptsz(CUgraphExec *executable, CUgraph graph,
                                                 CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    CALL_WITH_PLAN(cuGraphInstantiateWithParams_ptsz, executable, graph, executable, graph, parameters);
}

/* A failed upload counts as a failed instantiation, whose result the program reads in `parameters`. */
static CUresult undo_instantiation(CUgraphExec executable, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters, CUresult result) {
    cuGraphExecDestroy(executable);
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

/* With CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD the driver would upload in the same call. Here the flag is cleared and the
 * graph uploaded by a second call, which is held to the limit. */
#define INSTANTIATE_AND_UPLOAD(instantiate, upload, executable, graph, parameters)                      \
    do {                                                                                                \
        if (!(parameters) || !((parameters)->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))               \
            return instantiate(executable, graph, parameters);                                          \
        (parameters)->flags &= ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;                         \
        CUresult result = instantiate(executable, graph, parameters);                                   \
        (parameters)->flags |= CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;                                      \
        if (result != CUDA_SUCCESS) return result;                                                      \
        result = upload(*(executable), (parameters)->hUploadStream);                                    \
        return result == CUDA_SUCCESS ? result : undo_instantiation(*(executable), parameters, result); \
    } while (0)

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    INSTANTIATE_AND_UPLOAD(instantiate_with_parameters, cuGraphUpload, executable, graph, parameters);
}

EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *executable, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    INSTANTIATE_AND_UPLOAD(instantiate_with_parameters_ptsz, cuGraphUpload_ptsz, executable, graph, parameters);
}

EXPORT CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode *error,
                                  CUgraphExecUpdateResult *update_result) {
    CALL_WITH_PLAN(cuGraphExecUpdate, &executable, graph, executable, graph, error, update_result);
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph,
                                     CUgraphExecUpdateResultInfo *update_result) {
    CALL_WITH_PLAN(cuGraphExecUpdate_v2, &executable, graph, executable, graph, update_result);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v1 *kernel) {
    LAUNCH_WITH_LOCAL_MEMORY(kernel ? kernel->func : NULL, cuGraphExecKernelNodeSetParams, executable, node, kernel);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS_v2 *kernel) {
    LAUNCH_WITH_LOCAL_MEMORY(kernel ? graph_plan_function(kernel->func, kernel->kern) : NULL,
                             cuGraphExecKernelNodeSetParams_v2, executable, node, kernel);
}

EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraphNodeParams *parameters) {
    bool is_kernel = parameters && parameters->type == CU_GRAPH_NODE_TYPE_KERNEL;
    LAUNCH_WITH_LOCAL_MEMORY(is_kernel ? graph_plan_function(parameters->kernel.func, parameters->kernel.kern) : NULL,
                             cuGraphExecNodeSetParams, executable, node, parameters);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
    graph_needs_remove((uint64_t)executable);
    return REAL(cuGraphExecDestroy)(executable);
}

typedef CUresult (*run_function)(CUgraphExec, CUstream);

static CUresult run_graph(const char *function_name, run_function real, run_function upload, CUgraphExec executable,
                          CUstream stream) {
    struct graph_calls calls;
    if (!graph_memory_begin(function_name, executable, &calls)) return CUDA_ERROR_OUT_OF_MEMORY;
    bool is_uploaded = !graph_memory_is_growth_known(&calls) && upload(executable, stream) == CUDA_SUCCESS;
    CUresult result = is_uploaded && !graph_memory_fits(&calls) ? CUDA_ERROR_OUT_OF_MEMORY : real(executable, stream);
    graph_memory_end(&calls);
    return result;
}

#define RUN_GRAPH(name, upload, executable, stream)                                           \
    return graph_needs_any() ? run_graph(#name, REAL(name), REAL(upload), executable, stream) \
                             : REAL(name)(executable, stream)

EXPORT CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) {
    RUN_GRAPH(cuGraphUpload, cuGraphUpload, executable, stream);
}

EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec executable, CUstream stream) {
    RUN_GRAPH(cuGraphUpload_ptsz, cuGraphUpload_ptsz, executable, stream);
}

static CUresult launch_graph(CUgraphExec executable, CUstream stream) {
    RUN_GRAPH(cuGraphLaunch, cuGraphUpload, executable, stream);
}

static CUresult launch_graph_ptsz(CUgraphExec executable, CUstream stream) {
    RUN_GRAPH(cuGraphLaunch_ptsz, cuGraphUpload_ptsz, executable, stream);
}

/* Body of a launching wrapper: the launch may wait for a turn (compute/launch_gate.h). `gate_stream` is the stream as
 * LEGACY or PER_THREAD name it. */
#define LAUNCH_GRAPH(launch, executable, stream, gate_stream)                                        \
    do {                                                                                             \
        if (!turn_need_is_any()) return launch(executable, stream);                                  \
        struct launch_pass pass = launch_gate_enter(launch_gate_graph_key(executable), gate_stream); \
        CUresult result = launch(executable, stream);                                                \
        launch_gate_leave(&pass);                                                                    \
        return result;                                                                               \
    } while (0)

EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    LAUNCH_GRAPH(launch_graph, executable, stream, STREAM_OR_LEGACY(stream));
}

EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec executable, CUstream stream) {
    LAUNCH_GRAPH(launch_graph_ptsz, executable, stream, STREAM_OR_PER_THREAD(stream));
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    if (!graph_needs_any()) return REAL(cuDeviceGraphMemTrim)(device);
    struct graph_calls calls;
    graph_memory_begin_trim("cuDeviceGraphMemTrim", device, &calls);
    CUresult result = REAL(cuDeviceGraphMemTrim)(device);
    graph_memory_end(&calls);
    return result;
}
