/* Physical memory that a thing of the driver's holds part by part: an array's tiles, a multicast object's ranges. Each
 * is a reference (backings.h) until it is unbound, another is bound in its place, or its owner ends. Pure but
 * for its own lock. */
#ifndef VGPU_BOOKS_BINDINGS_H
#define VGPU_BOOKS_BINDINGS_H

#include "books/physical_memory.h"

/* `place` tells the owner's parts apart; `number` and `sort` are of a reference that the binding takes over. What
 * changed with the end of the one that was there before. */
struct physical_memory bindings_put(uint64_t owner, uint64_t place, uint64_t number, enum reference_kind sort);

/* One ends. */
struct physical_memory bindings_remove(uint64_t owner, uint64_t place);

/* A further reference, unseen, to the memory bound there; 0 where there is none. */
uint64_t bindings_hold(uint64_t owner, uint64_t place);

/* The first of all of an owner's ends; false where there is none. */
bool bindings_remove_any(uint64_t owner, struct physical_memory *change);

#endif
