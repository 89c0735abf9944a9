/* Address ranges to which physical memory is mapped (cuMemMap). Not locked: the caller holds LOCK_PHYSICAL_MEMORY. */
#ifndef VGPU_BOOKS_PHYSICAL_MAPPINGS_H
#define VGPU_BOOKS_PHYSICAL_MAPPINGS_H

#include "books/physical/references.h"

struct mapping {
    uint64_t number;          /* of the memory; 0 = no mapping */
    enum reference_kind kind; /* of the handle that it was mapped by */
    uint64_t size;            /* bytes */
};

/* Adds a mapping that begins at an address. False where malloc fails. */
bool mappings_add(uint64_t address, struct mapping mapping);

/* The mapping that contains an address. */
struct mapping mappings_at(uint64_t address);

/* Removes the mapping that begins at an address. */
struct mapping mappings_take(uint64_t address);

/* Removes all mappings, in the child of a fork. */
void mappings_forget_all(void);

#endif
