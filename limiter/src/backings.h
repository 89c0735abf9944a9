/* Physical memory made by cuMemCreate: it lasts until its last handle is released and its last mapping is gone, in any
 * order. Pure but for its own lock. What we have not seen made (imports) is unknown here, and costs nothing. */
#ifndef VGPU_BACKINGS_H
#define VGPU_BACKINGS_H

#include <stdbool.h>
#include <stdint.h>

struct backing {
    int card;
    uint64_t bytes; /* 0: nothing to take back */
};

/* Adds memory with its first handle; false when our own memory is out. */
bool backings_create(uint64_t handle, struct backing backing);

/* Another reference by a handle, old or new, to the memory that is mapped at an address. */
void backings_retain(uint64_t handle, uint64_t address);

/* Another reference by a mapping. */
void backings_map(uint64_t address, uint64_t size, uint64_t handle);

/* A handle's reference ends: returns what is to be taken back. */
struct backing backings_release(uint64_t handle);

/* The first mapping in [*address, end) ends: `*freed` is what is to be taken back, and `*address` moves behind it.
 * False where there is none. */
bool backings_unmap(uint64_t *address, uint64_t end, struct backing *freed);

/* Around a fork, and in the child, which holds nothing. */
void backings_lock(void);
void backings_unlock(void);
void backings_forget_all(void);

#endif
