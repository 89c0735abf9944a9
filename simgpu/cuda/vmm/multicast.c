/* Multicast objects: handles that charge nothing themselves and keep the memory bound to them. They cannot be exported
 * to other processes. The granularities are those documented for an H100; they were not measured. */
#include <stdlib.h>

#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "cuda/vmm/addresses.h"
#include "cuda/vmm/multicast_bindings.h"
#include "cuda/vmm/physical.h"
#include "hardware/export.h"

#define RECOMMENDED (512 * MIB)

static bool aligned(uint64_t value) { return value % PAGE == 0; }

static bool properties_are_valid(const CUmulticastObjectProp *prop) {
    return prop->numDevices > 0 && prop->flags == 0 && prop->size > 0;
}

EXPORT CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *properties,
                                          CUmulticastGranularity_flags option) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!granularity || !properties || properties->numDevices == 0) return CUDA_ERROR_INVALID_VALUE;
    *granularity = option == CU_MULTICAST_GRANULARITY_MINIMUM ? PAGE : RECOMMENDED;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *properties) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!handle || !properties) return CUDA_ERROR_INVALID_VALUE;
    if (!properties_are_valid(properties) || !aligned(properties->size)) return CUDA_ERROR_INVALID_VALUE;
    if (properties->handleTypes != 0) return CUDA_ERROR_NOT_SUPPORTED;
    struct multicast *multicast = calloc(1, sizeof *multicast);
    struct physical *made =
        !multicast ? NULL : physical_make(&(CUmemAllocationProp){.requestedHandleTypes = 0}, properties->size, 0);
    if (!made) {
        free(multicast);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    multicast->wanted = properties->numDevices;
    made->multicast = multicast;
    *handle = (uintptr_t)made;
    return CUDA_SUCCESS;
}

static struct physical *multicast_of(CUmemGenericAllocationHandle handle) {
    struct physical *found = physical_of(handle);
    return found && found->multicast ? found : NULL;
}

EXPORT CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct physical *object = multicast_of(handle);
    if (!object) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    struct multicast *multicast = object->multicast;
    bool is_full = (unsigned)__builtin_popcount(multicast->added) == multicast->wanted;
    if (is_full || (multicast->added >> device & 1) != 0) return CUDA_ERROR_INVALID_VALUE;
    multicast->added |= 1U << device;
    return CUDA_SUCCESS;
}

/* Whether all devices were added, the memory is on one of them, and the range is free. */
static bool may_bind(const struct physical *object, const struct physical *memory, uint64_t offset, uint64_t size) {
    const struct multicast *multicast = object->multicast;
    CUdevice device = memory->properties.location.id;
    bool is_complete = (unsigned)__builtin_popcount(multicast->added) == multicast->wanted;
    bool fits = size > 0 && offset <= object->size && size <= object->size - offset;
    return is_complete && fits && (multicast->added >> device & 1) != 0 &&
           !bindings_overlap(multicast, device, offset, size);
}

static CUresult bind(CUmemGenericAllocationHandle handle, uint64_t offset, struct physical *memory,
                     uint64_t memory_offset, uint64_t size) {
    struct physical *object = multicast_of(handle);
    if (!object || !memory || memory->multicast) return CUDA_ERROR_INVALID_VALUE;
    if (!aligned(offset) || !aligned(memory_offset) || !aligned(size)) return CUDA_ERROR_INVALID_VALUE;
    if (memory_offset > memory->size || size > memory->size - memory_offset) return CUDA_ERROR_INVALID_VALUE;
    if (!may_bind(object, memory, offset, size)) return CUDA_ERROR_INVALID_VALUE;
    return binding_add(object->multicast, offset, size, memory);
}

EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                                   CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                                   unsigned long long flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return bind(handle, offset, physical_of(memory), memory_offset, size);
}

EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr address,
                                    size_t size, unsigned long long flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return bind(handle, offset, physical_mapped(address, size), 0, size);
}

EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct physical *object = multicast_of(handle);
    if (!object) return CUDA_ERROR_INVALID_VALUE;
    bool is_removed = binding_remove(object->multicast, device, offset, size);
    return is_removed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
