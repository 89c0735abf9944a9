#include "books/pools/current_pool_cache.h"

#include <stddef.h>

/* The current pools of devices beyond this number are not cached. */
enum { DEVICES = 64 };

static struct pool *cached[DEVICES]; /* atomic: current pool of each device; NULL = the driver must be asked */
static unsigned drops;               /* atomic: how often `cached` was cleared */
static bool was_chosen;              /* atomic: the program has chosen a current pool; never reset */

struct pool *current_pool_cache_find(CUdevice device) {
    return device < DEVICES ? __atomic_load_n(&cached[device], __ATOMIC_ACQUIRE) : NULL;
}

unsigned current_pool_cache_generation(void) { return __atomic_load_n(&drops, __ATOMIC_SEQ_CST); }

/* The pool is stored first, so that a drop beside this call either clears it or is seen here. */
void current_pool_cache_put(CUdevice device, struct pool *pool, unsigned generation) {
    if (device >= DEVICES) return;
    __atomic_store_n(&cached[device], pool, __ATOMIC_SEQ_CST);
    if (current_pool_cache_generation() != generation) __atomic_store_n(&cached[device], NULL, __ATOMIC_SEQ_CST);
}

void current_pool_cache_drop(void) {
    __atomic_fetch_add(&drops, 1, __ATOMIC_SEQ_CST);
    for (int device = 0; device < DEVICES; device++) __atomic_store_n(&cached[device], NULL, __ATOMIC_SEQ_CST);
}

void current_pool_cache_note_choice(void) {
    __atomic_store_n(&was_chosen, true, __ATOMIC_SEQ_CST);
    current_pool_cache_drop();
}

bool current_pool_cache_has_choice(void) { return __atomic_load_n(&was_chosen, __ATOMIC_RELAXED); }
