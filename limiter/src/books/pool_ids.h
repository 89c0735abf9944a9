/* Our own numbers for the pools that this process shares with others, as maker or importer: handles come again, these
 * do not. Pure but for its own lock. */
#ifndef VGPU_BOOKS_POOL_IDS_H
#define VGPU_BOOKS_POOL_IDS_H

#include <stdbool.h>
#include <stdint.h>

/* `charged` bytes of a card are what an importer is charged for pointers that there was no row (shares.h) for. */
struct shared_pool {
    uint64_t number; /* 0: none */
    uint64_t charged;
    int card;
};

/* The pool of that handle, numbered if it is not yet; its number is 0 when our own memory is out. */
struct shared_pool pool_ids_get(uint64_t handle);

/* Notes what is charged for it, or more of it. */
void pool_ids_charge(uint64_t handle, int card, uint64_t bytes);

/* Puts one back that was taken. */
void pool_ids_put(uint64_t handle, struct shared_pool pool);

/* Forgets it, which has ended. */
struct shared_pool pool_ids_take(uint64_t handle);

#endif
