/* Lifetime of physical memory that cuMemCreate made, and of exported pools. The memory lives until its last handle is
 * released, its last mapping is removed and every other reference ends, in any order. Memory that this process has
 * imported from another one is recorded too, so that the end of the import is known; it is charged to its exporter.
 *
 * NVML counts the memory for this process while a handle from its creation exists, or a mapping by such a handle; with
 * only a handle that was imported from an exported descriptor, once that descriptor is closed. Memory that is held only
 * by an open descriptor, an array, a multicast object or a buffer of external memory is hidden: it is on the card, but
 * in NVML's figure of no process (measured on an H200, driver 580).
 *
 * The library identifies memory by a memory number, because the driver reuses handles. Every function takes
 * LOCK_PHYSICAL_MEMORY. A returned `struct physical_memory` says what changed because a reference ended; the caller
 * applies it to the charge. Pure apart from that. */
#ifndef VGPU_BOOKS_PHYSICAL_PHYSICAL_MEMORY_H
#define VGPU_BOOKS_PHYSICAL_PHYSICAL_MEMORY_H

#include "books/physical/references.h"

/* Adds memory with its first handle in this process. Of the memory `card` and `bytes` are used, and `group` if another
 * process made it. False where malloc fails. */
bool physical_memory_create(uint64_t handle, struct physical_memory memory);

/* Adds a reference by a handle, known or not, to the memory that is mapped at an address. */
void physical_memory_retain(uint64_t handle, uint64_t address);

/* Adds a reference by a mapping of a handle's memory. */
void physical_memory_map(uint64_t address, uint64_t size, uint64_t handle);

/* Records that a handle's memory is exported as a file descriptor, which is a reference while it is open. Returns the
 * memory; its number is 0 where it is unknown. */
struct exported_memory physical_memory_export(uint64_t handle, int descriptor);

/* Whether this process has exported memory as this descriptor. */
bool physical_memory_is_exported(int descriptor);

/* The same for memory of another process that is imported without a handle. Returns the memory number; 0 where malloc
 * fails. */
uint64_t physical_memory_hold_foreign(struct physical_memory memory);

/* Adds a reference by a handle that was imported from a descriptor, if this process created the memory. */
void physical_memory_import(uint64_t handle, int descriptor);

/* A memory number for a pool that is exported; 0 where malloc fails. The pool's size is given at its end. */
uint64_t physical_memory_begin_pool(void);

/* Records that a pool is exported as a file descriptor, which holds its memory while it is open. */
void physical_memory_export_pool(uint64_t number, int descriptor);

/* Forgets a descriptor that the driver has taken over from the program. */
void physical_memory_disown(int descriptor);

/* Adds a reference of REFERENCE_OTHER to a handle's memory. Returns the memory number; 0 where it is unknown. */
uint64_t physical_memory_hold(uint64_t handle);

/* Adds a reference of REFERENCE_OTHER to the memory mapped at an address. Returns the memory number; 0 where it is
 * unknown. */
uint64_t physical_memory_hold_at(uint64_t address);

/* Adds a reference of REFERENCE_IMPORTED to the memory that was exported as a descriptor. Returns the memory number; 0
 * where it is unknown. */
uint64_t physical_memory_hold_imported(int descriptor);

/* The region's row of the card whose memory is mapped at an address; -1 where it is unknown. */
int physical_memory_card_at(uint64_t address);

/* Adds a reference to the memory of a number. */
void physical_memory_add_reference(uint64_t number, enum reference_kind kind);

/* Removes a reference to the memory of a number. Returns what changed. */
struct physical_memory physical_memory_drop(uint64_t number, enum reference_kind kind);

/* Removes a reference by a handle. Returns what changed. */
struct physical_memory physical_memory_release(uint64_t handle);

/* Records that a pool is destroyed; `bytes` on `card` live on while a descriptor of the pool is open. Returns what
 * changed. */
struct physical_memory physical_memory_end_pool(uint64_t number, int card, uint64_t bytes);

/* Removes the mapping at `*address`, moves `*address` behind it, and stores what changed in `change`. False where there
 * is no mapping at `*address`, or `*address` has reached `end`. */
bool physical_memory_unmap(uint64_t *address, uint64_t end, struct physical_memory *change);

/* Bytes on the region's row `card` that cuMemCreate made and NVML counts for this process while it has a context. */
uint64_t physical_memory_shown_bytes(int card);

/* Finds memory whose descriptor was closed since the last call, and stores what changed in `change`. False where
 * there is none. */
bool physical_memory_sweep(struct physical_memory *change);

#endif
