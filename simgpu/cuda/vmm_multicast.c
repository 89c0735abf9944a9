/* Multicast objects: handles that take nothing of a card themselves, and keep what is bound to them. Of one process
 * only; minimum and recommended granularity as told of an H100, not measured. */
#define _GNU_SOURCE
#include "vmm_physical.h"

#include <stdlib.h>

#define RECOMMENDED (512 * SIM_MIB)

typedef struct Binding {
    struct Binding *next;
    uint64_t offset;
    uint64_t size;
    Physical *memory;
} Binding;

struct Multicast {
    unsigned wanted; /* devices */
    unsigned added;  /* one bit each */
    Binding *bindings;
};

static bool aligned(uint64_t value) { return value % PAGE == 0; }

static void unbind(Binding **link) {
    Binding *gone = *link;
    *link = gone->next;
    physical_let_go(gone->memory);
    free(gone);
}

void multicast_free(Multicast *multicast) {
    while (multicast->bindings != NULL) {
        unbind(&multicast->bindings);
    }
    free(multicast);
}

static bool properties_are_valid(const CUmulticastObjectProp *prop) {
    return prop->numDevices > 0 && prop->flags == 0 && prop->size > 0;
}

SIM_EXPORT CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
                                              CUmulticastGranularity_flags option) {
    ENTER();
    REQUIRE(granularity != NULL && prop != NULL && prop->numDevices > 0, CUDA_ERROR_INVALID_VALUE);
    *granularity = option == CU_MULTICAST_GRANULARITY_MINIMUM ? PAGE : RECOMMENDED;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop) {
    ENTER();
    REQUIRE(mcHandle != NULL && prop != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(properties_are_valid(prop) && aligned(prop->size), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(prop->handleTypes == 0, CUDA_ERROR_NOT_SUPPORTED);
    Multicast *multicast = calloc(1, sizeof *multicast);
    Physical *made =
        multicast == NULL ? NULL : physical_make(&(CUmemAllocationProp){.requestedHandleTypes = 0}, prop->size, 0);
    if (made == NULL) {
        free(multicast);
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    }
    multicast->wanted = prop->numDevices;
    made->multicast = multicast;
    *mcHandle = (uintptr_t)made;
    LEAVE(CUDA_SUCCESS);
}

static Physical *multicast_of(CUmemGenericAllocationHandle handle) {
    Physical *found = physical_of(handle);
    return found != NULL && found->multicast != NULL ? found : NULL;
}

SIM_EXPORT CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev) {
    ENTER();
    const Physical *object = multicast_of(mcHandle);
    REQUIRE(object != NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_at(dev) != NULL, CUDA_ERROR_INVALID_DEVICE);
    Multicast *multicast = object->multicast;
    bool full = (unsigned)__builtin_popcount(multicast->added) == multicast->wanted;
    REQUIRE(!full && (multicast->added >> dev & 1) == 0, CUDA_ERROR_INVALID_VALUE);
    multicast->added |= 1U << dev;
    LEAVE(CUDA_SUCCESS);
}

static bool overlaps(const Multicast *multicast, CUdevice device, uint64_t offset, uint64_t size) {
    for (const Binding *each = multicast->bindings; each != NULL; each = each->next) {
        bool same = each->memory->properties.location.id == device;
        if (same && offset < each->offset + each->size && each->offset < offset + size) {
            return true;
        }
    }
    return false;
}

/* All its devices were added, the memory is of one of them, and the range is free. */
static bool may_bind(const Physical *object, const Physical *memory, uint64_t offset, uint64_t size) {
    const Multicast *multicast = object->multicast;
    CUdevice device = memory->properties.location.id;
    bool complete = (unsigned)__builtin_popcount(multicast->added) == multicast->wanted;
    bool fits = size > 0 && offset <= object->size && size <= object->size - offset;
    return complete && fits && (multicast->added >> device & 1) != 0 && !overlaps(multicast, device, offset, size);
}

static CUresult bind(CUmemGenericAllocationHandle handle, uint64_t offset, Physical *memory, uint64_t memory_offset,
                     uint64_t size) {
    Physical *object = multicast_of(handle);
    REQUIRE(object != NULL && memory != NULL && memory->multicast == NULL, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(aligned(offset) && aligned(memory_offset) && aligned(size), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(memory_offset <= memory->size && size <= memory->size - memory_offset, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(may_bind(object, memory, offset, size), CUDA_ERROR_INVALID_VALUE);
    Binding *made = malloc(sizeof *made);
    REQUIRE(made != NULL, CUDA_ERROR_OUT_OF_MEMORY);
    *made = (Binding){.next = object->multicast->bindings, .offset = offset, .size = size, .memory = memory};
    object->multicast->bindings = made;
    physical_hold(memory);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                                       CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                                       unsigned long long flags) {
    ENTER();
    REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    return bind(mcHandle, mcOffset, physical_of(memHandle), memOffset, size);
}

SIM_EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr,
                                        size_t size, unsigned long long flags) {
    ENTER();
    REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    return bind(mcHandle, mcOffset, physical_mapped(memptr, size), 0, size);
}

SIM_EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                                      size_t size) {
    ENTER();
    const Physical *object = multicast_of(mcHandle);
    REQUIRE(object != NULL, CUDA_ERROR_INVALID_VALUE);
    for (Binding **link = &object->multicast->bindings; *link != NULL; link = &(*link)->next) {
        bool same = (*link)->memory->properties.location.id == dev;
        if (same && (*link)->offset == mcOffset && (*link)->size == size) {
            unbind(link);
            LEAVE(CUDA_SUCCESS);
        }
    }
    LEAVE(CUDA_ERROR_INVALID_VALUE);
}
