/* Physical memory made by cuMemCreate: it lasts until its last handle is released, its last mapping is gone, and
 * whatever else the driver holds it by, in any order. Pure but for its own lock. What we have not seen made (another
 * process's) is unknown here, and costs nothing.
 *
 * NVML counts it as this process's while a handle from its making, or a mapping by one, is left; with an import of an
 * exported descriptor only once that is closed. What an open descriptor holds, an array, a multicast object or a buffer
 * of external memory is on the card, but in nobody's figure: hidden (measured on an H200, driver 580). */
#ifndef VGPU_BOOKS_PHYSICAL_MEMORY_H
#define VGPU_BOOKS_PHYSICAL_MEMORY_H

#include "books/references.h"

/* Adds memory with its first handle; false when our own memory is out. */
bool physical_memory_create(uint64_t handle, struct physical_memory physical_memory);

/* Another reference by a handle, old or new, to the memory that is mapped at an address. */
void physical_memory_retain(uint64_t handle, uint64_t address);

/* Another reference by a mapping. */
void physical_memory_map(uint64_t address, uint64_t size, uint64_t handle);

/* A handle's memory is exported as a file descriptor, which is a reference while it is open. */
void physical_memory_export(uint64_t handle, int descriptor);

/* A further reference by a handle that was imported from a descriptor, if the memory is our own. */
void physical_memory_import(uint64_t handle, int descriptor);

/* A pool that is shared: the number of what its descriptors may hold when it ends, 0 when our own memory is out. */
uint64_t physical_memory_begin_pool(void);
void physical_memory_export_pool(uint64_t number, int descriptor);

/* The driver has taken over a descriptor. */
void physical_memory_disown(int descriptor);

/* A reference to memory without a handle: to that of a handle, mapped at an address, or exported as a descriptor. Its
 * number, 0 where the memory is unknown. */
uint64_t physical_memory_hold(uint64_t handle);
uint64_t physical_memory_hold_at(uint64_t address);
uint64_t physical_memory_hold_imported(int descriptor);

/* A further one to the memory of that number. */
void physical_memory_hold_again(uint64_t number, enum reference_kind sort);

/* The functions from here on say what changed with the end of a reference. */

struct physical_memory physical_memory_drop(uint64_t number, enum reference_kind sort);

struct physical_memory physical_memory_release(uint64_t handle);

/* The pool is gone; `bytes` of a card are what a descriptor holds on. */
struct physical_memory physical_memory_end_pool(uint64_t number, int card, uint64_t bytes);

/* The first mapping in [*address, end) ends, and `*address` moves behind it. False where there is none. */
bool physical_memory_unmap(uint64_t *address, uint64_t end, struct physical_memory *change);

/* The next memory of which a descriptor has been closed since; false where there is none. */
bool physical_memory_sweep(struct physical_memory *change);

#endif
