#include "cuda/vmm/multicast_bindings.h"

#include <stdlib.h>

CUresult binding_add(Multicast *multicast, uint64_t offset, uint64_t size, Physical *memory) {
    Binding *made = malloc(sizeof *made);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (Binding){.next = multicast->bindings, .offset = offset, .size = size, .memory = memory};
    multicast->bindings = made;
    physical_add_binding(memory);
    return CUDA_SUCCESS;
}

bool binding_remove(Multicast *multicast, CUdevice device, uint64_t offset, uint64_t size) {
    for (Binding **link = &multicast->bindings; *link != NULL; link = &(*link)->next) {
        bool same = (*link)->memory->properties.location.id == device;
        if (same && (*link)->offset == offset && (*link)->size == size) {
            physical_unbind(link);
            return true;
        }
    }
    return false;
}

bool bindings_overlap(const Multicast *multicast, CUdevice device, uint64_t offset, uint64_t size) {
    for (const Binding *each = multicast->bindings; each != NULL; each = each->next) {
        bool same = each->memory->properties.location.id == device;
        if (same && offset < each->offset + each->size && each->offset < offset + size) {
            return true;
        }
    }
    return false;
}
