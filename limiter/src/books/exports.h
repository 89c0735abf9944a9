/* What a pool has exported, by steps of 32 MiB of its addresses. The memory of an exported pointer's steps is kept by
 * the pool, freed or not, until another pointer that lies there is exported, or the pool is destroyed; allocating there
 * again takes other memory. Freed and given back, it is not in what the pool has reserved, so in nobody's figure: lost
 * (measured on an H200, driver 580). Pure but for its own lock. */
#ifndef VGPU_BOOKS_EXPORTS_H
#define VGPU_BOOKS_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* What a pool grows by, or a multiple of it (measured on an H200, driver 580). */
#define POOL_STEP (32ULL << 20)

/* Whether anything ever was. */
bool exports_any(void);

/* The pointer at an address is exported; its pool is told by number, never 0. False when our own memory is out. */
bool exports_add(uint64_t pool, uint64_t address, uint64_t size);

/* A pointer, exported or not, is freed. */
void exports_free(uint64_t address);

/* The pool has given back so much: up to that of what it has exported and freed is lost now. */
void exports_shrink(uint64_t pool, uint64_t bytes);

/* Bytes that are lost; and of all that was exported. */
uint64_t exports_lost_bytes(uint64_t pool);
uint64_t exports_bytes(uint64_t pool);

/* The pool is gone. */
void exports_end_pool(uint64_t pool);

#endif
