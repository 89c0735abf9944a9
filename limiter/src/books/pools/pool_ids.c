#include "books/pools/pool_ids.h"

#include "books/hash_table.h"
#include "books/physical/physical_memory.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table pools; /* LOCK_POOL_IDS; key: the handle, value: the number, bytes: `charged` */

static void forget(void) { hash_table_clear(&pools); }
FORGET_IN_CHILD(forget);

static struct shared_pool pool_of(struct hash_table_entry entry) {
    return (struct shared_pool){entry.value, entry.bytes, entry.card};
}

/* The caller holds LOCK_POOL_IDS. */
static bool put(uint64_t handle, struct shared_pool pool) {
    return hash_table_put(
        &pools, (struct hash_table_entry){.key = handle, .bytes = pool.charged, .value = pool.id, .card = pool.card});
}

struct shared_pool pool_ids_get(uint64_t handle) {
    HOLD_LOCK(LOCK_POOL_IDS);
    struct shared_pool pool = pool_of(hash_table_find(&pools, handle));
    if (pool.id == 0) pool.id = physical_memory_begin_pool();
    if (pool.id != 0 && !put(handle, pool)) pool.id = 0;
    return pool;
}

void pool_ids_charge(uint64_t handle, int card, uint64_t bytes) {
    HOLD_LOCK(LOCK_POOL_IDS);
    struct shared_pool pool = pool_of(hash_table_find(&pools, handle));
    pool.charged += bytes;
    pool.card = card;
    put(handle, pool);
}

void pool_ids_put(uint64_t handle, struct shared_pool pool) {
    HOLD_LOCK(LOCK_POOL_IDS);
    if (pool.id != 0) put(handle, pool);
}

struct shared_pool pool_ids_take(uint64_t handle) {
    HOLD_LOCK(LOCK_POOL_IDS);
    return pool_of(hash_table_take(&pools, handle));
}
