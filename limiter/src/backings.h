/* Physical memory made by cuMemCreate: it lasts until its last handle is released, its last mapping is gone, and
 * whatever else the driver holds it by, in any order. Pure but for its own lock. What we have not seen made (another
 * process's) is unknown here, and costs nothing.
 *
 * NVML counts it as this process's while a handle from its making, or a mapping by one, is left. What is held by an
 * exported descriptor alone, by an import of that, by an array or by external memory is on the card, but in nobody's
 * figure (measured on an H200, driver 580): such references are unseen. */
#ifndef VGPU_BACKINGS_H
#define VGPU_BACKINGS_H

#include <stdbool.h>
#include <stdint.h>

struct backing {
    int card;
    uint64_t bytes; /* 0: what is held is held as before */
    bool is_hidden; /* held on, but NVML no longer counts it; else freed */
    bool was_hidden;
    bool is_exported; /* another process may hold it on */
};

/* Adds memory with its first handle; false when our own memory is out. */
bool backings_create(uint64_t handle, struct backing backing);

/* Another reference by a handle, old or new, to the memory that is mapped at an address. */
void backings_retain(uint64_t handle, uint64_t address);

/* Another reference by a mapping. */
void backings_map(uint64_t address, uint64_t size, uint64_t handle);

/* A handle's memory is exported as a file descriptor, which is a reference while it is open. */
void backings_export(uint64_t handle, int descriptor);

/* A further reference by a handle that was imported from a descriptor, if the memory is our own. */
void backings_import(uint64_t handle, int descriptor);

/* The driver has taken over a descriptor. */
void backings_disown(int descriptor);

/* An unseen reference to memory, by a handle, where it is mapped, by a descriptor of it, or by another such reference:
 * its number, 0 where it is unknown. */
uint64_t backings_hold(uint64_t handle);
uint64_t backings_hold_at(uint64_t address);
uint64_t backings_hold_by(int descriptor);
uint64_t backings_hold_again(uint64_t number);

/* The functions from here on say what changed with the end of a reference. */

/* Of an unseen one. */
struct backing backings_drop(uint64_t number);

struct backing backings_release(uint64_t handle);

/* The first mapping in [*address, end) ends, and `*address` moves behind it. False where there is none. */
bool backings_unmap(uint64_t *address, uint64_t end, struct backing *change);

/* Memory that was left to a descriptor which has been closed; false where there is none. */
bool backings_sweep(struct backing *change);

/* Around a fork, and in the child, which holds nothing. */
void backings_lock(void);
void backings_unlock(void);
void backings_forget_all(void);

#endif
