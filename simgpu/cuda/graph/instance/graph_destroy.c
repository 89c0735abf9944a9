/* Creation and destruction of graphs. */
#include "cuda/driver/driver.h"
#include "cuda/graph/graph.h"
#include "cuda/graph/instance/instances.h"
#include "hardware/export.h"

EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!graph || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = graph_make();
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!graph_exists(graph)) return CUDA_ERROR_INVALID_VALUE;
    instances_forget(graph);
    graph_free(graph);
    return CUDA_SUCCESS;
}
