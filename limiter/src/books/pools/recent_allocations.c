#include "books/pools/recent_allocations.h"

#include "process/fork.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* An entry is one 64-bit word, so that threads need no lock: the pointer in units of 512 bytes (40 bits), the pool's
 * index (8 bits), and the size in grains of 32 KiB (16 bits). Pool pointers are multiples of a unit and have at most 49
 * bits. */
enum { ENTRIES = 256, UNIT_BITS = 9, POOL_BITS = 8, SIZE_BITS = 16, GRAIN_BITS = 15 };

static const uint64_t GRAINS_MAX = (1ULL << SIZE_BITS) - 1, POOL_MAX = (1ULL << POOL_BITS) - 1;

static uint64_t entries[ENTRIES]; /* atomic; 0 = free */

static_assert(ENTRIES == 1 << 8, "entry_of takes the 8 high bits of the hash");
static_assert(RECENT_ALLOCATIONS_POOLS == 1 << POOL_BITS, "POOL_BITS hold every index");

static uint64_t *entry_of(uint64_t unit) { return &entries[(unit * 0x9e3779b97f4a7c15ULL) >> 56]; }

/* Rounds the size down, so that the pool's bytes in use are never underestimated. */
void recent_allocations_add(uint64_t pointer, int pool, uint64_t bytes) {
    uint64_t unit = pointer >> UNIT_BITS, grains = bytes >> GRAIN_BITS;
    bool is_representable = grains != 0 && grains <= GRAINS_MAX;
    uint64_t entry = is_representable ? (unit << POOL_BITS | (uint64_t)pool) << SIZE_BITS | grains : 0;
    __atomic_store_n(entry_of(unit), entry, __ATOMIC_RELAXED);
}

struct recent_allocation recent_allocations_take(uint64_t pointer) {
    static const struct recent_allocation nothing;
    uint64_t unit = pointer >> UNIT_BITS, *slot = entry_of(unit);
    uint64_t entry = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (entry == 0 || entry >> SIZE_BITS >> POOL_BITS != unit) return nothing;
    __atomic_store_n(slot, 0, __ATOMIC_RELAXED); /* may drop another thread's new record; checking would cost more */
    return (struct recent_allocation){(int)(entry >> SIZE_BITS & POOL_MAX), (entry & GRAINS_MAX) << GRAIN_BITS};
}

static void forget(void) { memset(entries, 0, sizeof entries); }
FORGET_IN_CHILD(forget);
