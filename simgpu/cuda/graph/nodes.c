/* Simulated kinds of nodes: empty, kernel, function of the host, allocation and free. */
#include "cuda/graph/nodes.h"

#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/graph/graph.h"
#include "cuda/module/module.h"
#include "hardware/export.h"
#include "hardware/units.h"

static CUgraphNode next_allocation(CUgraphNode node) {
    while (node && node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) node = node->next;
    return node;
}

/* The last allocation at the address, freed or not; NULL when there is none. */
static CUgraphNode last_allocation_at(CUgraph graph, CUdeviceptr address) {
    CUgraphNode found = NULL;
    for (CUgraphNode node = next_allocation(graph->nodes); node; node = next_allocation(node->next))
        found = node->address == address ? node : found;
    return found;
}

/* The end of an allocation that overlaps the range and is not freed; 0 when there is none. */
static CUdeviceptr overlapped_end(CUgraph graph, CUdeviceptr address, uint64_t size) {
    for (CUgraphNode node = next_allocation(graph->nodes); node; node = next_allocation(node->next)) {
        CUdeviceptr end = node->address + round_up(node->size, SMALL_UNIT);
        if (!node->is_paired && address < end && node->address < address + size) return end;
    }
    return 0;
}

/* The lowest free address of the graph. Memory that an earlier node frees is used again (measured on an H200, driver
 * 580). */
static CUdeviceptr free_address(CUgraph graph, uint64_t size) {
    CUdeviceptr address = graph->addresses;
    CUdeviceptr end;
    while ((end = overlapped_end(graph, address, size)) != 0) address = end;
    return address;
}

static CUresult add_allocation(CUgraphNode *out, CUgraph graph, CUDA_MEM_ALLOC_NODE_PARAMS *parameters) {
    const CUmemPoolProps *wanted = &parameters->poolProps;
    if (!graph_exists(graph) || wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !device_at(wanted->location.id) || wanted->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
        parameters->bytesize == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    parameters->dptr = free_address(graph, parameters->bytesize);
    struct CUgraphNode_st node = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                  .address = parameters->dptr,
                                  .size = parameters->bytesize,
                                  .device = wanted->location.id,
                                  .allocation = *parameters};
    return graph_add(out, graph, &node);
}

/* The memory is allocated by this graph and not freed yet, or it is allocated by another graph. */
static CUresult add_free(CUgraphNode *out, CUgraph graph, CUdeviceptr address) {
    if (!graph_exists(graph) || !graph_has_addresses(address)) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode allocated = last_allocation_at(graph, address);
    if (allocated && allocated->is_paired) return CUDA_ERROR_INVALID_VALUE;
    struct CUgraphNode_st node = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address};
    if (allocated) {
        node.is_paired = true;
        node.size = allocated->size;
        node.device = allocated->device;
    }
    CUresult result = graph_add(out, graph, &node);
    if (result == CUDA_SUCCESS && allocated) allocated->is_paired = true;
    return result;
}

CUresult graph_set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel) {
    const struct CUfunc_st *function = kernel->func ? kernel->func : (const struct CUfunc_st *)kernel->kern;
    if (!function || node->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    node->kernel = *kernel;
    node->duration_ns = function->duration_ns;
    node->local = function->local;
    node->uses_heap = function->uses_heap;
    return CUDA_SUCCESS;
}

static CUresult add_kernel(CUgraphNode *out, CUgraph graph, const CUDA_KERNEL_NODE_PARAMS *kernel) {
    struct CUgraphNode_st node = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    CUresult result = graph_set_kernel(&node, kernel);
    return result == CUDA_SUCCESS ? graph_add(out, graph, &node) : result;
}

static CUresult add_call(CUgraphNode *out, CUgraph graph, const CUDA_HOST_NODE_PARAMS *call) {
    if (!call->fn) return CUDA_ERROR_INVALID_VALUE;
    return graph_add(out, graph, &(struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_HOST, .call = *call});
}

CUresult graph_add_call(CUgraph graph, const CUDA_HOST_NODE_PARAMS *call) {
    CUgraphNode node;
    return add_call(&node, graph, call);
}

CUresult graph_add_kernel(CUgraph graph, CUfunction function) {
    CUgraphNode node;
    return add_kernel(&node, graph, &(CUDA_KERNEL_NODE_PARAMS){.func = function});
}

CUresult graph_add_allocation(CUgraph graph, CUdevice device, uint64_t size, CUdeviceptr *address) {
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}},
        .bytesize = size,
    };
    CUresult result = add_allocation(&node, graph, &parameters);
    *address = parameters.dptr;
    return result;
}

CUresult graph_add_free(CUgraph graph, CUdeviceptr address) {
    CUgraphNode node;
    return add_free(&node, graph, address);
}

EXPORT CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                   const CUDA_HOST_NODE_PARAMS *parameters) {
    (void)dependencies;
    (void)count;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!parameters) return CUDA_ERROR_INVALID_VALUE;
    return add_call(node, graph, parameters);
}

EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!node || !parameters) return CUDA_ERROR_INVALID_VALUE;
    return graph_set_kernel(node, parameters);
}

EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                       CUDA_MEM_ALLOC_NODE_PARAMS *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!parameters || (!dependencies && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    return add_allocation(node, graph, parameters);
}

EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                      CUdeviceptr address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!dependencies && count != 0) return CUDA_ERROR_INVALID_VALUE;
    return add_free(node, graph, address);
}

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!dependencies && count != 0) return CUDA_ERROR_INVALID_VALUE;
    return graph_add(node, graph, &(struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                        const CUDA_KERNEL_NODE_PARAMS *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!parameters || (!dependencies && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    return add_kernel(node, graph, parameters);
}

EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS_v1 *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!parameters || (!dependencies && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    return add_kernel(node, graph, &(CUDA_KERNEL_NODE_PARAMS){.func = parameters->func});
}

static CUresult add(CUgraphNode *out, CUgraph graph, CUgraphNodeParams *parameters) {
    switch ((int)parameters->type) {
        case CU_GRAPH_NODE_TYPE_EMPTY:
            return graph_add(out, graph, &(struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_EMPTY});
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return add_kernel(
                out, graph,
                &(CUDA_KERNEL_NODE_PARAMS){.func = parameters->kernel.func, .kern = parameters->kernel.kern});
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return add_allocation(out, graph, (CUDA_MEM_ALLOC_NODE_PARAMS *)&parameters->alloc);
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return add_free(out, graph, parameters->free.dptr);
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EXPORT CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                               CUgraphNodeParams *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!parameters || (!dependencies && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, parameters);
}

EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *parameters) {
    (void)edges;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!parameters || (!dependencies && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, parameters);
}

EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!node || !parameters) return CUDA_ERROR_INVALID_VALUE;
    if (node->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
    *parameters = node->kernel;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!node || !parameters) return CUDA_ERROR_INVALID_VALUE;
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return CUDA_ERROR_INVALID_VALUE;
    *parameters = node->allocation;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!node || !address) return CUDA_ERROR_INVALID_VALUE;
    if (node->type != CU_GRAPH_NODE_TYPE_MEM_FREE) return CUDA_ERROR_INVALID_VALUE;
    *address = node->address;
    return CUDA_SUCCESS;
}
