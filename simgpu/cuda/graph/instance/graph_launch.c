/* Launch of graph instances. The memory of an instance is reserved at its upload or its first launch. */
#include "cuda/context/limits.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/capture.h"
#include "cuda/graph/instance/instance_memory.h"
#include "cuda/graph/instance/instances.h"
#include "cuda/memory/allocation_free.h"
#include "cuda/stream/host_function.h"
#include "cuda/stream/stream.h"
#include "hardware/export.h"

EXPORT CUresult cuGraphUpload(CUgraphExec instance, CUstream stream) {
    (void)stream;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!instance_exists(instance)) return CUDA_ERROR_INVALID_VALUE;
    return instance_reserve(instance);
}

/* Only allocations that outlive the launch get an entry in the table. */
static CUresult run_memory_step(const struct CUgraphNode_st *step, CUcontext context) {
    if (step->is_paired) return CUDA_SUCCESS;
    if (step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) return instance_keep_allocation(step, context);
    if (step->type != CU_GRAPH_NODE_TYPE_MEM_FREE) return CUDA_SUCCESS;
    struct allocation *found = allocation_at(step->address);
    return found ? allocation_free(found) : CUDA_ERROR_INVALID_VALUE;
}

/* The kernels so far, and then the function. */
static CUresult run_call(const struct CUgraphNode_st *step, CUstream stream, uint64_t *duration_ns) {
    CUresult result = *duration_ns > 0 ? stream_run(stream, *duration_ns) : CUDA_SUCCESS;
    *duration_ns = 0;
    if (result != CUDA_SUCCESS) return result;
    return stream_call(stream, (struct host_call){.function = step->call.fn, .data = step->call.userData});
}

/* Runs the nodes in turn. `duration_ns` is what the kernels take that are not in the stream yet. */
static CUresult run(CUgraphExec exec, CUcontext context, CUstream stream, uint64_t *duration_ns) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < exec->count; i++) {
        const struct CUgraphNode_st *step = &exec->steps[i];
        *duration_ns += step->duration_ns;
        result = context_make_heap(context, step->uses_heap);
        if (result == CUDA_SUCCESS) result = run_memory_step(step, context);
        if (result == CUDA_SUCCESS && step->type == CU_GRAPH_NODE_TYPE_HOST)
            result = run_call(step, stream, duration_ns);
    }
    return result;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec instance, CUstream stream) {
    uint64_t duration_ns = 0;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUcontext context = stream_context(stream);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (capture_of(stream)) return CUDA_ERROR_NOT_SUPPORTED; /* child graphs are not simulated */
    if (!instance_exists(instance)) return CUDA_ERROR_INVALID_VALUE;
    if ((instance->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) instance_free_outstanding(instance);
    if (instance_has_outstanding(instance)) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = instance_reserve(instance);
    if (result != CUDA_SUCCESS) return result;
    instance_count_use(instance);
    result = run(instance, context, stream, &duration_ns);
    return result == CUDA_SUCCESS ? stream_run(stream, duration_ns) : result;
}
