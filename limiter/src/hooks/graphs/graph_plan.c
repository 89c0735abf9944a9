#include "hooks/graphs/graph_plan.h"

#include <stdlib.h>

#include "charge/measure/local_memory.h"
#include "driver/function_table.h"

CUfunction graph_plan_function(CUfunction function, CUkernel kernel) {
    return function ? function : (CUfunction)kernel;
}

static void read_kernel(CUgraphNode node, struct graph_plan *plan) {
    CUDA_KERNEL_NODE_PARAMS_v2 parameters = {0};
    CUresult result =
        functions_has(FN_cuGraphKernelNodeGetParams_v2)
            ? REAL(cuGraphKernelNodeGetParams_v2)(node, &parameters)
            : REAL(cuGraphKernelNodeGetParams)(node, (CUDA_KERNEL_NODE_PARAMS_v1 *)&parameters); /* v2 begins with v1 */
    if (result != CUDA_SUCCESS) return;
    uint64_t growth = local_memory_growth(graph_plan_function(parameters.func, parameters.kern));
    if (growth > plan->local_growth) plan->local_growth = growth;
}

static void read_allocation(CUgraphNode node, struct graph_plan *plan) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {0};
    if (REAL(cuGraphMemAllocNodeGetParams)(node, &parameters) != CUDA_SUCCESS) return;
    int device = parameters.poolProps.location.id;
    plan->unfreed_addresses += parameters.dptr;
    if (parameters.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE && device >= 0 && device < REGION_CARDS)
        graph_blocks_add(&plan->blocks[device], parameters.dptr, parameters.bytesize);
}

static void read_free(CUgraphNode node, struct graph_plan *plan) {
    CUdeviceptr pointer;
    if (REAL(cuGraphMemFreeNodeGetParams)(node, &pointer) == CUDA_SUCCESS) plan->unfreed_addresses -= pointer;
}

/* NOLINTBEGIN(misc-no-recursion): the depth is that of nested graphs */
static void read_graph(CUgraph graph, struct graph_plan *plan);

static void read_child(CUgraphNode node, struct graph_plan *plan) {
    CUgraph child;
    if (REAL(cuGraphChildGraphNodeGetGraph)(node, &child) == CUDA_SUCCESS) read_graph(child, plan);
}

/* Drivers before CUDA 13 do not return the bodies of a conditional node. */
static void read_bodies(CUgraphNode node, struct graph_plan *plan) {
    CUgraphNodeParams parameters = {0};
    if (!functions_has(FN_cuGraphNodeGetParams) || REAL(cuGraphNodeGetParams)(node, &parameters) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < parameters.conditional.size; i++) read_graph(parameters.conditional.phGraph_out[i], plan);
}

static void read_node(CUgraphNode node, struct graph_plan *plan) {
    CUgraphNodeType type;
    if (REAL(cuGraphNodeGetType)(node, &type) != CUDA_SUCCESS) return;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) read_kernel(node, plan);
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) read_allocation(node, plan);
    if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) read_free(node, plan);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) read_child(node, plan);
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) read_bodies(node, plan);
}

static void read_graph(CUgraph graph, struct graph_plan *plan) {
    size_t count = 0;
    if (REAL(cuGraphGetNodes)(graph, NULL, &count) != CUDA_SUCCESS || count == 0) return;
    CUgraphNode *nodes = (CUgraphNode *)malloc(count * sizeof *nodes);
    if (nodes && REAL(cuGraphGetNodes)(graph, nodes, &count) == CUDA_SUCCESS)
        for (size_t i = 0; i < count; i++) read_node(nodes[i], plan);
    free((void *)nodes);
}
/* NOLINTEND(misc-no-recursion) */

void graph_plan_read(CUgraph graph, struct graph_plan *plan) {
    *plan = (struct graph_plan){0};
    read_graph(graph, plan);
}
