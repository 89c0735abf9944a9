/* Pool memory that this process has exported, by steps of 32 MiB of a pool's address range.
 *
 * A pool keeps the memory of each step that an exported pointer lies in, freed or not, until another pointer in that
 * step is exported or the pool is destroyed; what is allocated at these addresses meanwhile is other memory. Exported
 * memory that was freed and given back is lost: it stays on the card, but is no longer part of what the driver says the
 * pool has reserved, nor of any process's figure in NVML (measured on an H200, driver 580).
 *
 * `pool` is the library's number for the pool (books/pools/pool_ids.h), never 0. Every function takes LOCK_EXPORTS,
 * except exports_any. Pure apart from that. */
#ifndef VGPU_BOOKS_POOLS_EXPORTS_H
#define VGPU_BOOKS_POOLS_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Pools grow by this size in bytes, or by a multiple of it (measured on an H200, driver 580). */
#define POOL_STEP (32ULL << 20)

/* Whether this process has ever exported pool memory. Needs no lock. */
bool exports_any(void);

/* Records that the pointer at an address is exported. False where malloc fails. */
bool exports_add(uint64_t pool, uint64_t address, uint64_t size);

/* Records that a pointer is freed; no effect where it was not exported. */
void exports_free(uint64_t address);

/* Records that a pool has given back `bytes` to the card: as many of its exported and freed bytes are lost now. */
void exports_shrink(uint64_t pool, uint64_t bytes);

/* Bytes of a pool that are lost. */
uint64_t exports_lost_bytes(uint64_t pool);

/* Bytes of all steps of a pool that exported pointers lie in, or lay in. */
uint64_t exports_bytes(uint64_t pool);

/* Forgets a pool that was destroyed. */
void exports_end_pool(uint64_t pool);

#endif
