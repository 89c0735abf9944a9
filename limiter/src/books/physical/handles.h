/* Handles of physical memory (CUmemGenericAllocationHandle). Not locked: the caller holds LOCK_PHYSICAL_MEMORY. */
#ifndef VGPU_BOOKS_PHYSICAL_HANDLES_H
#define VGPU_BOOKS_PHYSICAL_HANDLES_H

#include "books/physical/references.h"

struct handle {
    uint64_t number; /* of the memory; 0 = none */
    enum reference_kind kind;
};

/* Adds a reference by a handle, which may have some already. False where malloc fails. */
bool handles_add(uint64_t value, struct handle handle);

/* The memory of a handle. */
struct handle handles_find(uint64_t value);

/* Removes one reference of a handle, and returns its memory. */
struct handle handles_release(uint64_t value);

/* Removes all handles, in the child of a fork. */
void handles_forget_all(void);

#endif
