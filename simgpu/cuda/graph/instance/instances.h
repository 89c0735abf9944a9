/* Instances of graphs. */
#ifndef SIMGPU_CUDA_GRAPH_INSTANCE_INSTANCES_H
#define SIMGPU_CUDA_GRAPH_INSTANCE_INSTANCES_H

#include <cuda.h>
#include <stdbool.h>

#include "cuda/graph/graph.h"

bool instance_exists(CUgraphExec exec);
/* Removes the graph, which is destroyed, from its instances. */
void instances_forget(CUgraph graph);

#endif
