/* Instances of graphs. */
#ifndef CUDA_GRAPH_INSTANCES_H
#define CUDA_GRAPH_INSTANCES_H

#include "graph.h"

#include <cuda.h>
#include <stdbool.h>

bool instance_exists(CUgraphExec exec);
/* Removes the graph, which is destroyed, from its instances. */
void instances_forget(CUgraph graph);

#endif
