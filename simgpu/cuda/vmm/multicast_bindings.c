#include "cuda/vmm/multicast_bindings.h"

#include <stdlib.h>

CUresult binding_add(struct multicast *multicast, uint64_t offset, uint64_t size, struct physical *memory) {
    struct binding *made = malloc(sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct binding){.next = multicast->bindings, .offset = offset, .size = size, .memory = memory};
    multicast->bindings = made;
    physical_add_binding(memory);
    return CUDA_SUCCESS;
}

bool binding_remove(struct multicast *multicast, CUdevice device, uint64_t offset, uint64_t size) {
    for (struct binding **link = &multicast->bindings; *link; link = &(*link)->next) {
        bool is_on_device = (*link)->memory->properties.location.id == device;
        if (is_on_device && (*link)->offset == offset && (*link)->size == size) {
            physical_unbind(link);
            return true;
        }
    }
    return false;
}

bool bindings_overlap(const struct multicast *multicast, CUdevice device, uint64_t offset, uint64_t size) {
    for (const struct binding *binding = multicast->bindings; binding; binding = binding->next) {
        bool is_on_device = binding->memory->properties.location.id == device;
        if (is_on_device && offset < binding->offset + binding->size && binding->offset < offset + size) return true;
    }
    return false;
}
