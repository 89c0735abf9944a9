/* Instances at work: their memory is taken by the upload or the first launch. */
#define _GNU_SOURCE
#include "graph.h"
#include "stream.h"

/* The most its allocations come to at once on a device, and what of it no node of its own frees. */
static uint64_t needed(CUgraphExec exec, CUdevice device, uint64_t *kept) {
    uint64_t highest = 0;
    *kept = 0;
    for (size_t i = 0; i < exec->count; i++) {
        const struct CUgraphNode_st *step = &exec->steps[i];
        if (step->device != device) {
            continue;
        }
        if (step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
            *kept += step->size;
        } else if (step->paired) {
            *kept -= step->size;
        }
        highest = *kept > highest ? *kept : highest;
    }
    return highest;
}

/* Blocks of 32 MiB and more, one after the other, each as large as the allocation that passes the end of those before
 * (measured on an H200, driver 580). */
static uint64_t blocks_of(CUgraphExec exec, CUdevice device) {
    uint64_t sum = 0;
    CUdeviceptr end = 0;
    for (size_t i = 0; i < exec->count; i++) {
        const struct CUgraphNode_st *step = &exec->steps[i];
        bool taken = step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && step->device == device;
        if (taken && step->address + step->size > end) {
            uint64_t block = round_up(step->size, GRAPH_BLOCK);
            CUdeviceptr begin = step->address / GRAPH_BLOCK * GRAPH_BLOCK;
            sum += block;
            end = (begin > end ? begin : end) + block;
        }
    }
    return sum;
}

static bool is_outstanding(const struct CUgraphNode_st *step) {
    return step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && !step->paired && allocation_at(step->address) != NULL;
}

static bool has_outstanding(CUgraphExec exec) {
    for (size_t i = 0; i < exec->count; i++) {
        if (is_outstanding(&exec->steps[i])) {
            return true;
        }
    }
    return false;
}

static void free_outstanding(CUgraphExec exec) {
    for (size_t i = 0; i < exec->count; i++) {
        if (is_outstanding(&exec->steps[i])) {
            (void)allocation_free(allocation_at(exec->steps[i].address));
        }
    }
}

/* What an instance still has from its last launch is not needed again. */
CUresult instance_upload(CUgraphExec exec) {
    CUresult result = CUDA_SUCCESS;
    if (has_outstanding(exec)) {
        return CUDA_SUCCESS;
    }
    for (CUdevice device = 0; result == CUDA_SUCCESS && device < device_count(); device++) {
        uint64_t blocks = blocks_of(exec, device);
        result = blocks == 0 ? CUDA_SUCCESS : graph_memory_reserve(device, blocks);
    }
    return result;
}

SIM_EXPORT CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
    (void)hStream;
    ENTER();
    REQUIRE(instance_exists(hGraphExec), CUDA_ERROR_INVALID_VALUE);
    LEAVE(instance_upload(hGraphExec));
}

static CUresult keep(const struct CUgraphNode_st *step, CUcontext context) {
    CUdeviceptr address;
    Allocation made = {.address = step->address,
                       .size = step->size,
                       .charged = step->size,
                       .kind = KIND_GRAPH,
                       .context = context,
                       .device = step->device};
    return allocation_add(made, &address);
}

/* Its nodes in turn, of whose memory only what outlives the launch is seen. */
static CUresult run(CUgraphExec exec, CUcontext context, uint64_t *duration_ns) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < exec->count; i++) {
        const struct CUgraphNode_st *step = &exec->steps[i];
        *duration_ns += step->duration_ns;
        if (step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && !step->paired) {
            result = keep(step, context);
        } else if (step->type == CU_GRAPH_NODE_TYPE_MEM_FREE && !step->paired) {
            Allocation *found = allocation_at(step->address);
            result = found != NULL ? allocation_free(found) : CUDA_ERROR_INVALID_VALUE;
        }
    }
    return result;
}

static void count_use(CUgraphExec exec) {
    uint64_t kept;
    for (CUdevice device = 0; device < device_count(); device++) {
        uint64_t highest = needed(exec, device, &kept);
        graph_memory_used(device, highest, kept);
    }
}

SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
    uint64_t duration_ns = 0;
    ENTER();
    CUcontext context = stream_context(hStream);
    REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(capture_of(hStream) == NULL, CUDA_ERROR_NOT_SUPPORTED); /* no graph in a graph here */
    REQUIRE(instance_exists(hGraphExec), CUDA_ERROR_INVALID_VALUE);
    if ((hGraphExec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0) {
        free_outstanding(hGraphExec);
    }
    REQUIRE(!has_outstanding(hGraphExec), CUDA_ERROR_INVALID_VALUE);
    CUresult result = instance_upload(hGraphExec);
    REQUIRE(result == CUDA_SUCCESS, result);
    count_use(hGraphExec);
    result = run(hGraphExec, context, &duration_ns);
    LEAVE(result == CUDA_SUCCESS ? stream_run(hStream, duration_ns) : result);
}
