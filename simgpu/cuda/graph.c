/* Graphs and what they are made of. */
#define _GNU_SOURCE
#include "graph.h"

#include <stdlib.h>

#define ADDRESSES (UINT64_C(1) << 48) /* above all that is addressed otherwise */
#define OF_EACH   (UINT64_C(1) << 40)

static CUgraph graphs;
static CUdeviceptr next_addresses = ADDRESSES;

bool graph_has_addresses(CUdeviceptr address) { return address >= ADDRESSES && address < next_addresses; }

bool graph_exists(CUgraph graph) {
    CUgraph each = graphs;
    while (each != NULL && each != graph) {
        each = each->next;
    }
    return each != NULL;
}

bool graph_allocates(CUgraph graph) {
    for (CUgraphNode node = graph->nodes; node != NULL; node = node->next) {
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
            return true;
        }
    }
    return false;
}

CUgraph graph_make(void) {
    CUgraph made = calloc(1, sizeof *made);
    if (made != NULL) {
        *made = (struct CUgraph_st){.next = graphs, .addresses = next_addresses};
        next_addresses += OF_EACH;
        graphs = made;
    }
    return made;
}

SIM_EXPORT CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
    ENTER();
    REQUIRE(phGraph != NULL && flags == 0, CUDA_ERROR_INVALID_VALUE);
    *phGraph = graph_make();
    LEAVE(*phGraph != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

SIM_EXPORT CUresult cuGraphDestroy(CUgraph hGraph) {
    ENTER();
    CUgraph *link = &graphs;
    while (*link != NULL && *link != hGraph) {
        link = &(*link)->next;
    }
    REQUIRE(hGraph != NULL && *link != NULL, CUDA_ERROR_INVALID_VALUE);
    *link = hGraph->next;
    instances_forget(hGraph);
    while (hGraph->nodes != NULL) {
        CUgraphNode gone = hGraph->nodes;
        hGraph->nodes = gone->next;
        free(gone);
    }
    free(hGraph);
    LEAVE(CUDA_SUCCESS);
}

CUresult graph_add(CUgraphNode *out, CUgraph graph, const struct CUgraphNode_st *node) {
    if (out == NULL || !graph_exists(graph)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUgraphNode made = malloc(sizeof *made);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUgraphNode *link = &graph->nodes;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *made = *node;
    made->next = NULL;
    *link = made;
    *out = made;
    return CUDA_SUCCESS;
}

/* Without room for them it says how many there are; where there is more room, what is left is NULL. */
SIM_EXPORT CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
    size_t count = 0;
    ENTER();
    REQUIRE(graph_exists(hGraph) && numNodes != NULL, CUDA_ERROR_INVALID_VALUE);
    for (CUgraphNode node = hGraph->nodes; node != NULL; node = node->next) {
        if (nodes != NULL && count < *numNodes) {
            nodes[count] = node;
        }
        count++;
    }
    for (size_t i = count; nodes != NULL && i < *numNodes; i++) {
        nodes[i] = NULL;
    }
    *numNodes = nodes == NULL || count < *numNodes ? count : *numNodes;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
    ENTER();
    REQUIRE(hNode != NULL && type != NULL, CUDA_ERROR_INVALID_VALUE);
    *type = hNode->type;
    LEAVE(CUDA_SUCCESS);
}
