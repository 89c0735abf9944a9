/* Physical memory that other objects of the driver hold part by part: arrays hold it by tiles, multicast objects by
 * ranges, external memory as a whole. Each binding is a reference (books/physical/physical_memory.h) until the part is
 * unbound or bound to other memory, or the owner ends. Every function takes LOCK_BINDINGS and LOCK_PHYSICAL_MEMORY, one
 * after the other. Pure apart from that. */
#ifndef VGPU_BOOKS_PHYSICAL_BINDINGS_H
#define VGPU_BOOKS_PHYSICAL_BINDINGS_H

#include "books/physical/physical_memory.h"

/* Binds `part` of `owner`, both the driver's or the caller's identifiers, to the memory `number`; the binding takes
 * over a reference of `kind` from the caller. `number` 0 unbinds the part. Returns what changes because the former
 * binding of the part ends. */
struct physical_memory bindings_put(uint64_t owner, uint64_t part, uint64_t number, enum reference_kind kind);

/* Adds a reference of REFERENCE_OTHER to the memory that a part is bound to; returns its number, 0 where there is
 * none. */
uint64_t bindings_hold(uint64_t owner, uint64_t part);

/* Removes one binding of an owner and stores what changes in `change`; false where the owner has no binding left. */
bool bindings_remove_any(uint64_t owner, struct physical_memory *change);

#endif
