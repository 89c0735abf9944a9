#include "cuda/graph/graph.h"

#include <stdlib.h>

#include "cuda/driver/driver.h"
#include "hardware/export.h"

#define ADDRESSES (UINT64_C(1) << 48) /* above every other address of the simulated driver */
#define PER_GRAPH (UINT64_C(1) << 40)

static CUgraph graphs;
static CUdeviceptr next_addresses = ADDRESSES;

bool graph_has_addresses(CUdeviceptr address) { return address >= ADDRESSES && address < next_addresses; }

bool graph_exists(CUgraph graph) {
    CUgraph found = graphs;
    while (found && found != graph) found = found->next;
    return found != NULL;
}

void graph_free(CUgraph graph) {
    CUgraph *link = &graphs;
    while (*link != graph) link = &(*link)->next;
    *link = graph->next;
    while (graph->nodes) {
        CUgraphNode gone = graph->nodes;
        graph->nodes = gone->next;
        free(gone);
    }
    free(graph);
}

bool graph_allocates(CUgraph graph) {
    for (CUgraphNode node = graph->nodes; node; node = node->next)
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) return true;
    return false;
}

CUgraph graph_make(void) {
    CUgraph made = calloc(1, sizeof *made);
    if (made) {
        *made = (struct CUgraph_st){.next = graphs, .addresses = next_addresses};
        next_addresses += PER_GRAPH;
        graphs = made;
    }
    return made;
}

CUresult graph_add(CUgraphNode *out, CUgraph graph, const struct CUgraphNode_st *node) {
    if (!out || !graph_exists(graph)) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode made = malloc(sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    CUgraphNode *link = &graph->nodes;
    while (*link) link = &(*link)->next;
    *made = *node;
    made->next = NULL;
    *link = made;
    *out = made;
    return CUDA_SUCCESS;
}

/* When `nodes` is NULL, sets `count` to the number of nodes. Room that is left is set to NULL. */
EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    size_t known = 0;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!graph_exists(graph) || !count) return CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode node = graph->nodes; node; node = node->next) {
        if (nodes && known < *count) nodes[known] = node;
        known++;
    }
    for (size_t i = known; nodes && i < *count; i++) nodes[i] = NULL;
    *count = !nodes || known < *count ? known : *count;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!node || !type) return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}
