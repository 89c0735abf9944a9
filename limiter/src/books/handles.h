/* The handles of physical memory. Not locked: its users lock. */
#ifndef VGPU_BOOKS_HANDLES_H
#define VGPU_BOOKS_HANDLES_H

#include "books/references.h"

/* Of the memory of that number. A number of 0 is none. */
struct handle {
    uint64_t number;
    enum reference_kind sort;
};

/* A reference by a handle, which may have some already; false when our own memory is out. */
bool handles_add(uint64_t value, struct handle handle);

/* Which memory's it is. */
struct handle handles_find(uint64_t value);

/* The same, and one of its references ends. */
struct handle handles_release(uint64_t value);

/* In the child of a fork. */
void handles_forget_all(void);

#endif
