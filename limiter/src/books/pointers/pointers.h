/* Charges of the allocations that this process holds, by device pointer, so that it is known what to release when a
 * pointer is freed.
 *
 * The driver cuts allocations of up to PIECE_MAX (pieces) from chunks of GRANULARITY bytes, and gives a chunk back with
 * its last piece (measured on an H200, driver 580). So a chunk is charged with its first piece.
 *
 * Every function takes LOCK_POINTERS; pointers_take does so only for addresses in the range of known pointers. Pure
 * apart from that. */
#ifndef VGPU_BOOKS_POINTERS_POINTERS_H
#define VGPU_BOOKS_POINTERS_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRANULARITY (2ULL << 20)
#define PIECE_MAX   (1ULL << 20)

struct pointer_charge {
    int card;        /* the region's row */
    uint64_t bytes;  /* charged for the pointer */
    bool is_piece;   /* the charge is its chunk's */
    bool is_managed; /* CUDA managed memory */
};

/* Adds a pointer with a charge of its own; false where malloc fails. */
bool pointers_add(uint64_t pointer, struct pointer_charge charge);

/* Adds a piece if its chunk is charged already. */
bool pointers_join_chunk(uint64_t pointer);

/* Adds a piece and its chunk, for which the caller has charged GRANULARITY bytes. False where malloc fails. Where
 * another thread has added the chunk meanwhile, the piece joins it, and `*is_surplus` tells the caller to release its
 * charge. */
bool pointers_add_piece(uint64_t pointer, int card, bool *is_surplus);

/* Removes a pointer and stores the charge to be released in `charge`: 0 bytes for a piece whose chunk has others left.
 * False where the pointer is unknown. */
bool pointers_take(uint64_t pointer, struct pointer_charge *charge);

/* Adds a pointer again that was just removed, because the driver did not free it. Returns the bytes to be released
 * because another thread has charged the chunk meanwhile. */
uint64_t pointers_put_back(uint64_t pointer, const struct pointer_charge *charge);

/* An array of all pointers, to be freed by the caller, and their count; NULL where there are none or malloc fails. */
uint64_t *pointers_list(size_t *count);

#endif
