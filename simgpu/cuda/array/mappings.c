#include "cuda/array/mappings.h"

#include <stdlib.h>
#include <string.h>

static ArrayPart *parts;

static void drop(ArrayPart **link) {
    ArrayPart *gone = *link;
    *link = gone->next;
    physical_remove_binding(gone->physical);
    free(gone);
}

void array_unmap_all(const void *array) {
    for (ArrayPart **link = &parts; *link != NULL;) {
        if ((*link)->array == array) {
            drop(link);
        } else {
            link = &(*link)->next;
        }
    }
}

void array_unmap(const ArrayPart *part) {
    for (ArrayPart **link = &parts; *link != NULL; link = &(*link)->next) {
        bool same = (*link)->array == part->array && (*link)->type == part->type;
        if (same && memcmp((*link)->name, part->name, sizeof part->name) == 0) {
            drop(link);
            return;
        }
    }
}

CUresult array_map(const ArrayPart *part, CUmemGenericAllocationHandle handle) {
    Physical *physical = physical_of(handle);
    if (physical == NULL || (physical->properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    ArrayPart *made = malloc(sizeof *made);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical_add_binding(physical);
    array_unmap(part);
    *made = *part;
    made->physical = physical;
    made->next = parts;
    parts = made;
    return CUDA_SUCCESS;
}
