/* Wrappers of graphs. The driver takes local memory of their kernels when they are instantiated
 * (charge/measure/local_memory.h), and memory for their own allocations when they are uploaded or launched
 * (graph_memory.h). */
#include "books/graphs/graph_needs.h"
#include "charge/measure/local_memory.h"
#include "charge/reserve/attempt.h"
#include "compute/gate/launch_gate.h"
#include "compute/gate/turn_need.h"
#include "compute/queue/turn_events.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/graphs/graph_memory.h"
#include "hooks/graphs/graph_plan.h"

static void record_needs(CUgraphExec executable, const struct graph_plan *plan) {
    uint64_t bytes[REGION_CARDS];
    for (int device = 0; device < REGION_CARDS; device++) bytes[device] = plan->blocks[device].sum;
    graph_needs_put((uint64_t)executable, bytes, plan->unfreed_addresses != 0);
}

/* An executable graph that is instantiated or updated: the local memory of its kernels is reserved, and the need of its
 * own allocations recorded. */
struct instantiation {
    struct graph_plan plan;
    struct attempt attempt;
    bool is_planned; /* `plan` is read: limits apply */
};

static void begin(struct instantiation *instantiation, const char *function_name, const CUgraphExec *executable,
                  CUgraph graph) {
    instantiation->is_planned = container_is_limited() && executable;
    if (instantiation->is_planned) graph_plan_read(graph, &instantiation->plan);
    uint64_t growth = instantiation->is_planned ? instantiation->plan.local_growth : 0;
    instantiation->attempt = local_memory_begin_launch(function_name, growth);
}

static CUresult end(struct instantiation *instantiation, CUresult result, const CUgraphExec *executable) {
    if (result == CUDA_SUCCESS && instantiation->is_planned) record_needs(*executable, &instantiation->plan);
    return local_memory_end_launch(&instantiation->attempt, result);
}

EXPORT CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph graph, CUgraphNode *error, char *log, size_t size) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct instantiation instantiation;
    begin(&instantiation, "cuGraphInstantiate", executable, graph);
    for (int calls = 0; attempt_needs_call(&instantiation.attempt, calls, result); calls++)
        result = REAL(cuGraphInstantiate)(executable, graph, error, log, size);
    return end(&instantiation, result, executable);
}

EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *executable, CUgraph graph, CUgraphNode *error, char *log,
                                      size_t size) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct instantiation instantiation;
    begin(&instantiation, "cuGraphInstantiate_v2", executable, graph);
    for (int calls = 0; attempt_needs_call(&instantiation.attempt, calls, result); calls++)
        result = REAL(cuGraphInstantiate_v2)(executable, graph, error, log, size);
    return end(&instantiation, result, executable);
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct instantiation instantiation;
    begin(&instantiation, "cuGraphInstantiateWithFlags", executable, graph);
    for (int calls = 0; attempt_needs_call(&instantiation.attempt, calls, result); calls++)
        result = REAL(cuGraphInstantiateWithFlags)(executable, graph, flags);
    return end(&instantiation, result, executable);
}

static CUresult instantiate_with_parameters(CUgraphExec *executable, CUgraph graph,
                                            CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct instantiation instantiation;
    begin(&instantiation, "cuGraphInstantiateWithParams", executable, graph);
    for (int calls = 0; attempt_needs_call(&instantiation.attempt, calls, result); calls++)
        result = REAL(cuGraphInstantiateWithParams)(executable, graph, parameters);
    return end(&instantiation, result, executable);
}

static CUresult instantiate_with_parameters_ptsz(CUgraphExec *executable, CUgraph graph,
                                                 CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct instantiation instantiation;
    begin(&instantiation, "cuGraphInstantiateWithParams_ptsz", executable, graph);
    for (int calls = 0; attempt_needs_call(&instantiation.attempt, calls, result); calls++)
        result = REAL(cuGraphInstantiateWithParams_ptsz)(executable, graph, parameters);
    return end(&instantiation, result, executable);
}

/* A failed upload counts as a failed instantiation, whose result the program reads in `parameters`. */
static CUresult undo_instantiation(CUgraphExec executable, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters, CUresult result) {
    cuGraphExecDestroy(executable);
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

typedef CUresult (*instantiate_function)(CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *);
typedef CUresult (*run_function)(CUgraphExec, CUstream);

static CUresult instantiate_without_upload(instantiate_function instantiate, CUgraphExec *executable, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    parameters->flags &= ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    CUresult result = instantiate(executable, graph, parameters);
    parameters->flags |= CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    return result;
}

/* With CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD the driver would upload in the same call. Here the flag is cleared and the
 * graph uploaded by a second call, which is held to the limit. */
static CUresult instantiate_and_upload(instantiate_function instantiate, run_function upload, CUgraphExec *executable,
                                       CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    if (!parameters || !(parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
        return instantiate(executable, graph, parameters);
    CUresult result = instantiate_without_upload(instantiate, executable, graph, parameters);
    if (result != CUDA_SUCCESS) return result;
    result = upload(*executable, parameters->hUploadStream);
    return result == CUDA_SUCCESS ? result : undo_instantiation(*executable, parameters, result);
}

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    return instantiate_and_upload(instantiate_with_parameters, cuGraphUpload, executable, graph, parameters);
}

EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *executable, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    return instantiate_and_upload(instantiate_with_parameters_ptsz, cuGraphUpload_ptsz, executable, graph, parameters);
}

EXPORT CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode *error,
                                  CUgraphExecUpdateResult *update_result) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct instantiation instantiation;
    begin(&instantiation, "cuGraphExecUpdate", &executable, graph);
    for (int calls = 0; attempt_needs_call(&instantiation.attempt, calls, result); calls++)
        result = REAL(cuGraphExecUpdate)(executable, graph, error, update_result);
    return end(&instantiation, result, &executable);
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph,
                                     CUgraphExecUpdateResultInfo *update_result) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct instantiation instantiation;
    begin(&instantiation, "cuGraphExecUpdate_v2", &executable, graph);
    for (int calls = 0; attempt_needs_call(&instantiation.attempt, calls, result); calls++)
        result = REAL(cuGraphExecUpdate_v2)(executable, graph, update_result);
    return end(&instantiation, result, &executable);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v1 *kernel) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt =
        local_memory_begin_launch("cuGraphExecKernelNodeSetParams", local_memory_growth(kernel ? kernel->func : NULL));
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
        result = REAL(cuGraphExecKernelNodeSetParams)(executable, node, kernel);
    return local_memory_end_launch(&attempt, result);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS_v2 *kernel) {
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt =
        local_memory_begin_launch("cuGraphExecKernelNodeSetParams_v2",
                                  local_memory_growth(kernel ? graph_plan_function(kernel->func, kernel->kern) : NULL));
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
        result = REAL(cuGraphExecKernelNodeSetParams_v2)(executable, node, kernel);
    return local_memory_end_launch(&attempt, result);
}

EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraphNodeParams *parameters) {
    bool is_kernel = parameters && parameters->type == CU_GRAPH_NODE_TYPE_KERNEL;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt = local_memory_begin_launch(
        "cuGraphExecNodeSetParams",
        local_memory_growth(is_kernel ? graph_plan_function(parameters->kernel.func, parameters->kernel.kern) : NULL));
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
        result = REAL(cuGraphExecNodeSetParams)(executable, node, parameters);
    return local_memory_end_launch(&attempt, result);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
    graph_needs_remove((uint64_t)executable);
    return REAL(cuGraphExecDestroy)(executable);
}

static CUresult upload_legacy(CUgraphExec executable, CUstream stream) {
    return REAL(cuGraphUpload)(executable, stream);
}

static CUresult upload_per_thread(CUgraphExec executable, CUstream stream) {
    return REAL(cuGraphUpload_ptsz)(executable, stream);
}

static CUresult run_with_memory(const char *function_name, run_function run, run_function upload,
                                CUgraphExec executable, CUstream stream) {
    struct graph_calls calls;
    if (!graph_memory_begin(function_name, executable, &calls)) return CUDA_ERROR_OUT_OF_MEMORY;
    bool is_uploaded = !graph_memory_is_growth_known(&calls) && upload(executable, stream) == CUDA_SUCCESS;
    CUresult result = is_uploaded && !graph_memory_fits(&calls) ? CUDA_ERROR_OUT_OF_MEMORY : run(executable, stream);
    graph_memory_end(&calls);
    return result;
}

/* Uploads or launches a graph, which needs memory for its own allocations. */
static inline CUresult run_graph(const char *function_name, run_function run, run_function upload,
                                 CUgraphExec executable, CUstream stream) {
    return graph_needs_any() ? run_with_memory(function_name, run, upload, executable, stream)
                             : run(executable, stream);
}

EXPORT CUresult cuGraphUpload(CUgraphExec executable, CUstream stream) {
    return run_graph("cuGraphUpload", upload_legacy, upload_legacy, executable, stream);
}

EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec executable, CUstream stream) {
    return run_graph("cuGraphUpload_ptsz", upload_per_thread, upload_per_thread, executable, stream);
}

static CUresult launch_legacy(CUgraphExec executable, CUstream stream) {
    return run_graph("cuGraphLaunch", REAL(cuGraphLaunch), upload_legacy, executable, stream);
}

static CUresult launch_per_thread(CUgraphExec executable, CUstream stream) {
    return run_graph("cuGraphLaunch_ptsz", REAL(cuGraphLaunch_ptsz), upload_per_thread, executable, stream);
}

/* The launch may wait for a turn (compute/gate/launch_gate.h). `gate_stream` is the stream as LEGACY or PER_THREAD name
 * it. */
static inline CUresult launch_in_turn(run_function launch, CUgraphExec executable, CUstream stream,
                                      CUstream gate_stream) {
    if (!turn_need_is_any()) return launch(executable, stream);
    struct launch_pass pass = launch_gate_enter(launch_gate_graph_key(executable), gate_stream, NULL);
    CUresult result = launch(executable, stream);
    launch_gate_leave(&pass);
    return result;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    return launch_in_turn(launch_legacy, executable, stream, STREAM_OR_LEGACY(stream));
}

EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec executable, CUstream stream) {
    return launch_in_turn(launch_per_thread, executable, stream, STREAM_OR_PER_THREAD(stream));
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    if (!graph_needs_any()) return REAL(cuDeviceGraphMemTrim)(device);
    struct graph_calls calls;
    graph_memory_begin_trim("cuDeviceGraphMemTrim", device, &calls);
    CUresult result = REAL(cuDeviceGraphMemTrim)(device);
    graph_memory_end(&calls);
    return result;
}
