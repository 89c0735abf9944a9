/* Pointers into other processes' pools that this process has imported and not freed. If a pool is destroyed before its
 * pointers are freed, the memory stays on the card until the process ends (measured on an H200, driver 580). `pool` is
 * the library's number for the pool (books/pools/pool_ids.h), never 0. Every function takes LOCK_IMPORTS, except
 * imports_any. Pure apart from that. */
#ifndef VGPU_BOOKS_POOLS_IMPORTS_H
#define VGPU_BOOKS_POOLS_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this process has ever imported a pointer. Needs no lock. */
bool imports_any(void);

/* Records that the pointer at an address is imported. False where malloc fails. */
bool imports_add(uint64_t pool, uint64_t address);

/* Records that a pointer is freed; no effect where it was not imported. */
void imports_free(uint64_t address);

/* Forgets a pool that was destroyed; true where pointers of it were not freed. */
bool imports_end_pool(uint64_t pool);

#endif
