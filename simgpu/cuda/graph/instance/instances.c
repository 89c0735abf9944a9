#include "cuda/graph/instance/instances.h"

#include <stdlib.h>

#include "cuda/context/context.h"
#include "cuda/context/local_memory.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/instance/instance_memory.h"
#include "hardware/export.h"

#define KNOWN_FLAGS                                                                         \
    (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | \
     CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static CUgraphExec instances;

bool instance_exists(CUgraphExec exec) {
    CUgraphExec instance = instances;
    while (instance && instance != exec) instance = instance->next;
    return instance != NULL;
}

void instances_forget(CUgraph graph) {
    for (CUgraphExec instance = instances; instance; instance = instance->next)
        instance->graph = instance->graph == graph ? NULL : instance->graph;
}

/* A graph that allocates has at most one instance at a time (result as measured on an H200, driver 580). */
static bool may_have_another(CUgraph graph) {
    CUgraphExec instance = instances;
    while (instance && instance->graph != graph) instance = instance->next;
    return !instance || !graph_allocates(graph);
}

static size_t count_nodes(CUgraph graph) {
    size_t count = 0;
    for (CUgraphNode node = graph->nodes; node; node = node->next) count++;
    return count;
}

static CUgraphExec copy(CUgraph graph) {
    CUgraphExec made = calloc(1, sizeof *made);
    size_t count = count_nodes(graph);
    struct CUgraphNode_st *steps = calloc(count + 1, sizeof *steps);
    if (!made || !steps) {
        free(made);
        free(steps);
        return NULL;
    }
    made->steps = steps;
    for (CUgraphNode node = graph->nodes; node; node = node->next) {
        steps[made->count] = *node;
        steps[made->count++].origin = node;
    }
    return made;
}

static void destroy(CUgraphExec exec) {
    free(exec->steps);
    free(exec);
}

/* Charges the local memory of the instance's kernels. */
static CUresult grow_local_memory(const struct CUgraphExec_st *exec) {
    CUcontext context;
    CUresult result = context_current(&context);
    for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++)
        if (exec->steps[i].type == CU_GRAPH_NODE_TYPE_KERNEL) result = local_grow(context, exec->steps[i].local);
    return exec->count > 0 ? result : CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
    if (!out || !graph_exists(graph) || (flags & ~(unsigned long long)KNOWN_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!may_have_another(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    CUgraphExec made = copy(graph);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    made->graph = graph;
    made->flags = flags;
    CUresult result = grow_local_memory(made);
    if (result == CUDA_SUCCESS && (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) result = instance_reserve(made);
    if (result != CUDA_SUCCESS) {
        destroy(made);
        return result;
    }
    made->next = instances;
    instances = made;
    *out = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *instance, CUgraph graph, unsigned long long flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
    return instantiate(instance, graph, flags);
}

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *instance, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = instantiate(instance, graph, parameters->flags);
    parameters->hErrNode_out = NULL;
    parameters->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

/* NOLINTBEGIN(readability-non-const-parameter): the signature is NVIDIA's */
EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *instance, CUgraph graph, CUgraphNode *error, char *logBuffer,
                                      size_t size) {
    (void)error; /* set only when an instantiation fails */
    (void)logBuffer;
    (void)size;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return instantiate(instance, graph, 0);
}
/* NOLINTEND(readability-non-const-parameter) */

EXPORT CUresult cuGraphInstantiate(CUgraphExec *instance, CUgraph graph, CUgraphNode *error, char *logBuffer,
                                   size_t size) {
    return cuGraphInstantiate_v2(instance, graph, error, logBuffer, size);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec instance) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    CUgraphExec *link = &instances;
    while (*link && *link != instance) link = &(*link)->next;
    if (!instance || !*link) return CUDA_ERROR_INVALID_VALUE;
    *link = instance->next;
    destroy(instance);
    return CUDA_SUCCESS;
}
