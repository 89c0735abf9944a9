/* What this process holds, by pointer, so that a pointer to be freed is known again. Pure but for its own lock.
 *
 * The driver cuts allocations of up to PIECE_MAX from chunks of GRANULARITY bytes, and gives a chunk back with its last
 * piece (measured on an H200, driver 580). So a chunk is charged with its first piece.
 */
#ifndef VGPU_BOOKS_POINTERS_H
#define VGPU_BOOKS_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRANULARITY (2ULL << 20)
#define PIECE_MAX   (1ULL << 20)

struct pointer_charge {
    int card;
    uint64_t bytes; /* charged for it */
    bool is_piece;
    bool is_managed;
};

/* Adds an allocation of its own; false when memory is out. */
bool pointers_add(uint64_t pointer, struct pointer_charge holding);

/* Adds a piece if its chunk is charged already. */
bool pointers_join_chunk(uint64_t pointer);

/* Adds a piece for whose chunk the caller has charged GRANULARITY. False when memory is out. Where another thread has
 * charged the chunk meanwhile, the piece joins it and `*spare` says that the caller's charge is one too many. */
bool pointers_add_piece(uint64_t pointer, int card, bool *spare);

/* Removes a pointer: what is to be taken back for it, which is nothing for a piece that leaves others in its chunk.
 * False where the pointer is unknown. */
bool pointers_take(uint64_t pointer, struct pointer_charge *holding);

/* Puts back what was just taken: the driver did not free it. Returns the bytes that are charged twice by that, for the
 * chunk came back by another thread meanwhile. */
uint64_t pointers_put_back(uint64_t pointer, const struct pointer_charge *holding);

/* A copy of all pointers held, for the caller to free, and their count; NULL where there are none or memory is out. */
uint64_t *pointers_list(size_t *count);

#endif
