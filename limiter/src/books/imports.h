/* Pointers of other processes' pools that this one has opened and not freed. Where a pool is destroyed before those of
 * it are freed, its memory is kept until the process ends (measured on an H200, driver 580). Pure but for its own lock.
 */
#ifndef VGPU_BOOKS_IMPORTS_H
#define VGPU_BOOKS_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether anything ever was. */
bool imports_any(void);

/* The pointer at an address is opened; its pool is told by number, never 0. False when our own memory is out. */
bool imports_add(uint64_t pool, uint64_t address);

/* A pointer, imported or not, is freed. */
void imports_free(uint64_t address);

/* The pool is destroyed; whether pointers of it were left. */
bool imports_end_pool(uint64_t pool);

#endif
