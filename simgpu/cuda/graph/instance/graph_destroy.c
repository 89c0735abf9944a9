/* Creation and destruction of graphs. */
#include "cuda/driver/driver.h"
#include "cuda/graph/graph.h"
#include "cuda/graph/instance/instances.h"
#include "hardware/export.h"

EXPORT CUresult cuGraphCreate(CUgraph *phGraph, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!phGraph || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = graph_make();
    return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuGraphDestroy(CUgraph hGraph) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!graph_exists(hGraph)) return CUDA_ERROR_INVALID_VALUE;
    instances_forget(hGraph);
    graph_free(hGraph);
    return CUDA_SUCCESS;
}
