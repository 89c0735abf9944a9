#include "books/recent_allocations.h"

#include "process/fork.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* An entry is one word, so that threads need no lock: the pointer's unit, its pool, and the size in grains. A pool's
 * pointers are multiples of a unit and have at most 49 bits. */
enum { ENTRIES = 256, UNIT_BITS = 9, POOL_BITS = 8, SIZE_BITS = 16, GRAIN_BITS = 15 };

static const uint64_t SIZE_MOST = (1ULL << SIZE_BITS) - 1, POOL_MOST = (1ULL << POOL_BITS) - 1;

static uint64_t entries[ENTRIES]; /* atomically; 0: free */

static_assert(ENTRIES == 1 << 8, "the hash's high bits");
static_assert(RECENT_ALLOCATIONS_POOLS == 1 << POOL_BITS, "a number has so many bits");

static uint64_t *entry_of(uint64_t unit) { return &entries[(unit * 0x9e3779b97f4a7c15ULL) >> 56]; }

/* Rounded down: what is left of the size counts as in use. */
void recent_allocations_add(uint64_t pointer, int pool, uint64_t bytes) {
    uint64_t unit = pointer >> UNIT_BITS, grains = bytes >> GRAIN_BITS;
    bool is_told = grains != 0 && grains <= SIZE_MOST;
    uint64_t entry = is_told ? (unit << POOL_BITS | (uint64_t)pool) << SIZE_BITS | grains : 0;
    __atomic_store_n(entry_of(unit), entry, __ATOMIC_RELAXED);
}

struct recent_allocation recent_allocations_take(uint64_t pointer) {
    static const struct recent_allocation nothing;
    uint64_t unit = pointer >> UNIT_BITS, *place = entry_of(unit);
    uint64_t entry = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (entry == 0 || entry >> SIZE_BITS >> POOL_BITS != unit) return nothing;
    __atomic_store_n(place, 0, __ATOMIC_RELAXED); /* and maybe forgets another, which costs less than to look */
    return (struct recent_allocation){(int)(entry >> SIZE_BITS & POOL_MOST), (entry & SIZE_MOST) << GRAIN_BITS};
}

static void forget(void) { memset(entries, 0, sizeof entries); }
FORGET_IN_CHILD(forget);
