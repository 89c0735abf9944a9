#include "shelves.h"

#include <string.h>

#include "holdings.h"

/* Devices beyond these share the last shelf. */
enum { SHELVES = 64 };

static uint64_t sums[SHELVES]; /* atomically */

static uint64_t *shelf(int device) { return &sums[device >= 0 && device < SHELVES ? device : SHELVES - 1]; }

static uint64_t chunks(uint64_t bytes) { return (bytes + GRANULE - 1) / GRANULE * GRANULE; }

uint64_t shelves_add(int device, uint64_t bytes) {
    uint64_t before = __atomic_fetch_add(shelf(device), bytes, __ATOMIC_RELAXED);
    return chunks(before + bytes) - chunks(before);
}

uint64_t shelves_remove(int device, uint64_t bytes) {
    uint64_t before = __atomic_fetch_sub(shelf(device), bytes, __ATOMIC_RELAXED);
    return chunks(before) - chunks(before - bytes);
}

void shelves_forget_all(void) { memset(sums, 0, sizeof sums); }
