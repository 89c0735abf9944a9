/* Per device. Reserved blocks are kept for the next launch until they are trimmed. */
#include "cuda/graph/graph_memory.h"

#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "hardware/cards.h"
#include "hardware/export.h"

struct graph_memory {
    uint64_t used;
    uint64_t used_high;
    uint64_t reserved;
    uint64_t reserved_high;
};

static struct graph_memory memories[MAX_CARDS];

static void raise_to(uint64_t *high, uint64_t value) { *high = value > *high ? value : *high; }

CUresult graph_memory_reserve(CUdevice device, uint64_t blocks) {
    struct graph_memory *memory = &memories[device];
    uint64_t needed = round_up(memory->used, GRAPH_BLOCK) + blocks;
    if (needed <= memory->reserved) return CUDA_SUCCESS;
    CUresult result = device_charge(device, needed - memory->reserved);
    if (result == CUDA_SUCCESS) {
        memory->reserved = needed;
        raise_to(&memory->reserved_high, needed);
    }
    return result;
}

void graph_memory_used(CUdevice device, uint64_t highest, uint64_t kept) {
    struct graph_memory *memory = &memories[device];
    raise_to(&memory->used_high, memory->used + highest);
    memory->used += kept;
}

void graph_memory_release(CUdevice device, uint64_t bytes) { memories[device].used -= bytes; }

/* Gives back blocks that are not in use. */
static void trim(CUdevice device) {
    struct graph_memory *memory = &memories[device];
    uint64_t kept = round_up(memory->used, GRAPH_BLOCK);
    device_release(device, memory->reserved - kept);
    memory->reserved = kept;
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    trim(device);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
    const struct graph_memory *memory = &memories[device];
    const uint64_t values[] = {memory->used, memory->used_high, memory->reserved, memory->reserved_high};
    *(cuuint64_t *)value = values[attribute];
    return CUDA_SUCCESS;
}

/* The only value allowed is 0: it resets a peak to the current value. */
EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(const cuuint64_t *)value != 0) return CUDA_ERROR_INVALID_VALUE;
    struct graph_memory *memory = &memories[device];
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
        memory->used_high = memory->used;
        return CUDA_SUCCESS;
    }
    if (attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
    memory->reserved_high = memory->reserved;
    return CUDA_SUCCESS;
}
