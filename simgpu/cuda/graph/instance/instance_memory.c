#include "cuda/graph/instance/instance_memory.h"

#include "cuda/allocation/allocation.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/graph/graph_memory.h"
#include "cuda/memory/allocation_free.h"

/* The most bytes that the instance's allocations take at once on a device. `kept` is what no node of the instance
 * frees. */
static uint64_t peak_bytes(CUgraphExec exec, CUdevice device, uint64_t *kept) {
    uint64_t highest = 0;
    *kept = 0;
    for (size_t i = 0; i < exec->count; i++) {
        const struct CUgraphNode_st *step = &exec->steps[i];
        if (step->device != device) continue;
        if (step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            *kept += step->size;
        else if (step->is_paired)
            *kept -= step->size;
        highest = *kept > highest ? *kept : highest;
    }
    return highest;
}

/* Bytes in blocks that a launch needs on a device. Whenever an allocation passes the end of the blocks before it, a
 * block of its size, a multiple of GRAPH_BLOCK, follows them (measured on an H200, driver 580). */
static uint64_t blocks_of(CUgraphExec exec, CUdevice device) {
    uint64_t sum = 0;
    CUdeviceptr end = 0;
    for (size_t i = 0; i < exec->count; i++) {
        const struct CUgraphNode_st *step = &exec->steps[i];
        bool is_taken = step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && step->device == device;
        if (is_taken && step->address + step->size > end) {
            uint64_t block = round_up(step->size, GRAPH_BLOCK);
            CUdeviceptr begin = step->address / GRAPH_BLOCK * GRAPH_BLOCK;
            sum += block;
            end = (begin > end ? begin : end) + block;
        }
    }
    return sum;
}

static bool is_outstanding(const struct CUgraphNode_st *step) {
    return step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && !step->is_paired && allocation_at(step->address);
}

bool instance_has_outstanding(CUgraphExec exec) {
    for (size_t i = 0; i < exec->count; i++)
        if (is_outstanding(&exec->steps[i])) return true;
    return false;
}

void instance_free_outstanding(CUgraphExec exec) {
    for (size_t i = 0; i < exec->count; i++)
        if (is_outstanding(&exec->steps[i])) allocation_free(allocation_at(exec->steps[i].address));
}

/* Nothing is reserved while allocations of the last launch are outstanding: their blocks are in use. */
CUresult instance_reserve(CUgraphExec exec) {
    CUresult result = CUDA_SUCCESS;
    if (instance_has_outstanding(exec)) return CUDA_SUCCESS;
    for (CUdevice device = 0; result == CUDA_SUCCESS && device < device_count(); device++) {
        uint64_t blocks = blocks_of(exec, device);
        result = blocks == 0 ? CUDA_SUCCESS : graph_memory_reserve(device, blocks);
    }
    return result;
}

CUresult instance_keep_allocation(const struct CUgraphNode_st *step, CUcontext context) {
    CUdeviceptr address;
    struct allocation made = {.address = step->address,
                              .size = step->size,
                              .charged = step->size,
                              .kind = KIND_GRAPH,
                              .context = context,
                              .device = step->device};
    return allocation_add(made, &address);
}

void instance_count_use(CUgraphExec exec) {
    uint64_t kept;
    for (CUdevice device = 0; device < device_count(); device++) {
        uint64_t highest = peak_bytes(exec, device, &kept);
        graph_memory_used(device, highest, kept);
    }
}
