#include "cuda/vmm/physical.h"

#include <stdlib.h>

#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/vmm/multicast_state.h"
#include "hardware/export.h"

static struct physical *physicals;

struct physical *physical_of(CUmemGenericAllocationHandle handle) {
    for (struct physical *physical = physicals; physical; physical = physical->next)
        if ((uintptr_t)physical == handle) return physical;
    return NULL;
}

struct physical *physical_make(const CUmemAllocationProp *properties, uint64_t size, uint64_t shared_id) {
    struct physical *made = malloc(sizeof *made);
    if (made) {
        *made = (struct physical){.next = physicals,
                                  .properties = *properties,
                                  .size = size,
                                  .shared_id = shared_id,
                                  .attribution = ATTRIBUTED,
                                  .references = 1};
        physicals = made;
    }
    return made;
}

static void give_back(const struct physical *physical) {
    if (physical->shared_id != 0)
        shared_memory_drop(physical->shared_id, physical->attribution);
    else
        device_release(physical->properties.location.id, physical->size);
}

/* Only bindings are left: the memory stays on the card, and NVML counts it with no process. */
static void make_unattributed(struct physical *physical) {
    struct shared_memory shared;
    CUresult result = device_share(physical->properties.location.id, physical->size, &physical->shared_id);
    if (result == CUDA_SUCCESS && shared_memory_hold(physical->shared_id, UNATTRIBUTED, &shared)) {
        shared_memory_drop(physical->shared_id, physical->attribution);
        physical->attribution = UNATTRIBUTED;
    }
}

static bool is_named(const struct physical *physical) { return physical->references > 0 || physical->mappings > 0; }

static void unlink_physical(const struct physical *physical) {
    struct physical **link = &physicals;
    while (*link != physical) link = &(*link)->next;
    *link = physical->next;
}

static void free_memory_if_unused(struct physical *physical) {
    if (is_named(physical)) return;
    if (physical->bindings > 0) {
        if (physical->attribution != UNATTRIBUTED) make_unattributed(physical);
        return;
    }
    unlink_physical(physical);
    give_back(physical);
    free(physical);
}

void physical_add_binding(struct physical *physical) { physical->bindings++; }

/* Only memory is bound, never a multicast object. */
void physical_remove_binding(struct physical *physical) {
    physical->bindings--;
    free_memory_if_unused(physical);
}

void physical_unbind(struct binding **link) {
    struct binding *gone = *link;
    *link = gone->next;
    physical_remove_binding(gone->memory);
    free(gone);
}

static void free_multicast_if_unused(struct physical *physical) {
    if (is_named(physical)) return;
    unlink_physical(physical);
    while (physical->multicast->bindings) physical_unbind(&physical->multicast->bindings);
    free(physical->multicast);
    free(physical);
}

static void free_if_unused(struct physical *physical) {
    if (physical->multicast)
        free_multicast_if_unused(physical);
    else
        free_memory_if_unused(physical);
}

void physical_add_mapping(struct physical *physical) { physical->mappings++; }

void physical_remove_mapping(struct physical *physical) {
    physical->mappings--;
    free_if_unused(physical);
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                              CUmemAllocationGranularity_flags option) {
    (void)option;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!granularity || !properties) return CUDA_ERROR_INVALID_VALUE;
    *granularity = PAGE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                            unsigned long long flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!handle || !properties || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (size == 0 || size % PAGE != 0) return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!device_at(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = device_charge(properties->location.id, size);
    if (result != CUDA_SUCCESS) return result;
    const struct physical *made = physical_make(properties, size, 0);
    if (!made) {
        device_release(properties->location.id, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (uintptr_t)made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    struct physical *physical = physical_of(handle);
    if (!physical || physical->references == 0) return CUDA_ERROR_INVALID_VALUE;
    physical->references--;
    free_if_unused(physical);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                       CUmemGenericAllocationHandle handle) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct physical *physical = physical_of(handle);
    if (!properties || !physical) return CUDA_ERROR_INVALID_VALUE;
    *properties = physical->properties;
    return CUDA_SUCCESS;
}
