#include "cuda/array/mappings.h"

#include <stdlib.h>
#include <string.h>

static struct array_part *parts;

static void drop(struct array_part **link) {
    struct array_part *gone = *link;
    *link = gone->next;
    physical_remove_binding(gone->physical);
    free(gone);
}

void array_unmap_all(const void *array) {
    for (struct array_part **link = &parts; *link;)
        if ((*link)->array == array)
            drop(link);
        else
            link = &(*link)->next;
}

void array_unmap(const struct array_part *part) {
    for (struct array_part **link = &parts; *link; link = &(*link)->next) {
        bool is_same = (*link)->array == part->array && (*link)->type == part->type;
        if (is_same && memcmp((*link)->name, part->name, sizeof part->name) == 0) {
            drop(link);
            return;
        }
    }
}

CUresult array_map(const struct array_part *part, CUmemGenericAllocationHandle handle) {
    struct physical *physical = physical_of(handle);
    if (!physical || (physical->properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct array_part *made = malloc(sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    physical_add_binding(physical);
    array_unmap(part);
    *made = *part;
    made->physical = physical;
    made->next = parts;
    parts = made;
    return CUDA_SUCCESS;
}
