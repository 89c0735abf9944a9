/* Memory of graphs: per device, shared by them and kept for the next launch until it is trimmed. */
#define _GNU_SOURCE
#include "graph.h"

typedef struct {
    uint64_t used;
    uint64_t used_high;
    uint64_t reserved;
    uint64_t reserved_high;
} Memory;

static Memory memories[SIM_MAX_CARDS];

static void raise_to(uint64_t *high, uint64_t value) { *high = value > *high ? value : *high; }

CUresult graph_memory_reserve(CUdevice device, uint64_t blocks) {
    Memory *memory = &memories[device];
    uint64_t needed = round_up(memory->used, GRAPH_BLOCK) + blocks;
    if (needed <= memory->reserved) {
        return CUDA_SUCCESS;
    }
    CUresult result = device_charge(device, needed - memory->reserved);
    if (result == CUDA_SUCCESS) {
        memory->reserved = needed;
        raise_to(&memory->reserved_high, needed);
    }
    return result;
}

void graph_memory_used(CUdevice device, uint64_t highest, uint64_t kept) {
    Memory *memory = &memories[device];
    raise_to(&memory->used_high, memory->used + highest);
    memory->used += kept;
}

void graph_memory_release(CUdevice device, uint64_t bytes) { memories[device].used -= bytes; }

void graph_memory_trim(CUdevice device) {
    Memory *memory = &memories[device];
    uint64_t kept = round_up(memory->used, GRAPH_BLOCK);
    device_release(device, memory->reserved - kept);
    memory->reserved = kept;
}

SIM_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    ENTER();
    REQUIRE(device_at(device) != NULL, CUDA_ERROR_INVALID_DEVICE);
    graph_memory_trim(device);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    ENTER();
    REQUIRE(device_at(device) != NULL, CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(value != NULL && attr <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, CUDA_ERROR_INVALID_VALUE);
    const Memory *memory = &memories[device];
    const uint64_t values[] = {memory->used, memory->used_high, memory->reserved, memory->reserved_high};
    *(cuuint64_t *)value = values[attr];
    LEAVE(CUDA_SUCCESS);
}

/* A high mark can be set to 0 alone, which resets it to what is now. */
SIM_EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    ENTER();
    REQUIRE(device_at(device) != NULL, CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(value != NULL && *(const cuuint64_t *)value == 0, CUDA_ERROR_INVALID_VALUE);
    Memory *memory = &memories[device];
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
        memory->used_high = memory->used;
        LEAVE(CUDA_SUCCESS);
    }
    REQUIRE(attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, CUDA_ERROR_INVALID_VALUE);
    memory->reserved_high = memory->reserved;
    LEAVE(CUDA_SUCCESS);
}
