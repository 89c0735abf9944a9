#include "books/pool_ids.h"

#include <pthread.h>

#include "books/hash_table.h"
#include "books/physical_memory.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hash_table pools; /* under the mutex: by handle, `other` is the number, `bytes` what is charged */

void pool_ids_lock(void) { pthread_mutex_lock(&mutex); }

void pool_ids_unlock(void) { pthread_mutex_unlock(&mutex); }

void pool_ids_forget_all(void) { hash_table_clear(&pools); }

static struct shared_pool of(struct hash_table_entry entry) {
    return (struct shared_pool){entry.other, entry.bytes, entry.card};
}

/* Under the mutex. */
static bool put(uint64_t handle, struct shared_pool pool) {
    return hash_table_put(&pools, (struct hash_table_entry){handle, pool.charged, pool.number, 0, pool.card});
}

struct shared_pool pool_ids_get(uint64_t handle) {
    pool_ids_lock();
    struct shared_pool pool = of(hash_table_find(&pools, handle));
    if (pool.number == 0) pool.number = physical_memory_begin_pool();
    if (pool.number != 0 && !put(handle, pool)) pool.number = 0;
    pool_ids_unlock();
    return pool;
}

void pool_ids_charge(uint64_t handle, int card, uint64_t bytes) {
    pool_ids_lock();
    struct shared_pool pool = of(hash_table_find(&pools, handle));
    pool.charged += bytes;
    pool.card = card;
    put(handle, pool);
    pool_ids_unlock();
}

void pool_ids_put(uint64_t handle, struct shared_pool pool) {
    pool_ids_lock();
    if (pool.number != 0) put(handle, pool);
    pool_ids_unlock();
}

struct shared_pool pool_ids_take(uint64_t handle) {
    pool_ids_lock();
    struct shared_pool pool = of(hash_table_take(&pools, handle));
    pool_ids_unlock();
    return pool;
}
