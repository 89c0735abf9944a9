/* Where physical memory is mapped. Not locked: its users lock. */
#ifndef VGPU_BOOKS_MAPPINGS_H
#define VGPU_BOOKS_MAPPINGS_H

#include "books/references.h"

/* Of the memory of that number, by a handle of that sort. A number of 0 is none. */
struct mapping {
    uint64_t number;
    enum reference_kind sort;
    uint64_t size;
};

/* False when our own memory is out. */
bool mappings_add(uint64_t address, struct mapping mapping);

/* The mapping around an address, which need not be the mapping's first. */
struct mapping mappings_at(uint64_t address);

/* The mapping that begins at an address, which ends. */
struct mapping mappings_take(uint64_t address);

/* In the child of a fork. */
void mappings_forget_all(void);

#endif
