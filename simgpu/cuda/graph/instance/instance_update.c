/* Changes to an instance that leave its form: from another graph, or of one kernel. */
#include <stdlib.h>

#include "cuda/context/context.h"
#include "cuda/context/local_memory.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/instance/instance_memory.h"
#include "cuda/graph/instance/instances.h"
#include "cuda/graph/nodes.h"
#include "hardware/export.h"

/* What forbids the update, as documented; nodes are compared in the order of their creation. Instances with memory of
 * their own are not updated here. */
static CUgraphExecUpdateResult compare(CUgraphExec exec, CUgraph graph) {
    size_t count = 0;
    if (graph_allocates(graph)) return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    for (CUgraphNode node = graph->nodes; node; node = node->next, count++) {
        if (count == exec->count) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        if (exec->steps[count].type != node->type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    }
    return count == exec->count ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
}

static CUresult grow_local_memory(uint64_t bytes) {
    CUcontext context;
    CUresult result = context_current(&context);
    return result == CUDA_SUCCESS ? local_grow(context, bytes) : result;
}

/* The steps keep their origins, by which later calls name them. */
static CUresult copy(CUgraphExec exec, CUgraph graph) {
    CUresult result = CUDA_SUCCESS;
    size_t i = 0;
    for (CUgraphNode node = graph->nodes; node && result == CUDA_SUCCESS; node = node->next, i++) {
        CUgraphNode origin = exec->steps[i].origin;
        exec->steps[i] = *node;
        exec->steps[i].origin = origin;
        if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) result = grow_local_memory(node->local);
    }
    return result;
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec instance, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!instance_exists(instance) || !graph_exists(graph) || !info) return CUDA_ERROR_INVALID_VALUE;
    *info = (CUgraphExecUpdateResultInfo){.result = compare(instance, graph)};
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    return copy(instance, graph);
}

static CUgraphNode step_of(CUgraphExec exec, CUgraphNode node) {
    for (size_t i = 0; i < exec->count; i++)
        if (exec->steps[i].origin == node) return &exec->steps[i];
    return NULL;
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec instance, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!instance_exists(instance) || !node || !parameters) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode step = step_of(instance, node);
    CUresult result = step ? graph_set_kernel(step, parameters) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? grow_local_memory(step->local) : result;
}
