/* Creation and destruction of graphs. */
#include "cuda/driver/driver.h"
#include "cuda/graph/graph.h"
#include "cuda/graph/instance/instances.h"
#include "hardware/export.h"

EXPORTED CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
    ENTER();
    REQUIRE(phGraph != NULL && flags == 0, CUDA_ERROR_INVALID_VALUE);
    *phGraph = graph_make();
    LEAVE(*phGraph != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORTED CUresult cuGraphDestroy(CUgraph hGraph) {
    ENTER();
    REQUIRE(graph_exists(hGraph), CUDA_ERROR_INVALID_VALUE);
    instances_forget(hGraph);
    graph_free(hGraph);
    LEAVE(CUDA_SUCCESS);
}
