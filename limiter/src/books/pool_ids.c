#include "books/pool_ids.h"

#include <pthread.h>

#include "books/hash_table.h"
#include "books/physical_memory.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger pools; /* under the mutex: by handle, `other` is the number, `bytes` what is charged */

void pool_numbers_lock(void) { pthread_mutex_lock(&mutex); }

void pool_numbers_unlock(void) { pthread_mutex_unlock(&mutex); }

void pool_numbers_forget_all(void) { ledger_clear(&pools); }

static struct shared_pool of(struct ledger_entry entry) {
    return (struct shared_pool){entry.other, entry.bytes, entry.card};
}

/* Under the mutex. */
static bool put(uint64_t handle, struct shared_pool pool) {
    return ledger_put(&pools, (struct ledger_entry){handle, pool.charged, pool.number, 0, pool.card});
}

struct shared_pool pool_numbers_get(uint64_t handle) {
    pool_numbers_lock();
    struct shared_pool pool = of(ledger_find(&pools, handle));
    if (pool.number == 0) pool.number = backings_begin_pool();
    if (pool.number != 0 && !put(handle, pool)) pool.number = 0;
    pool_numbers_unlock();
    return pool;
}

void pool_numbers_charge(uint64_t handle, int card, uint64_t bytes) {
    pool_numbers_lock();
    struct shared_pool pool = of(ledger_find(&pools, handle));
    pool.charged += bytes;
    pool.card = card;
    put(handle, pool);
    pool_numbers_unlock();
}

void pool_numbers_put(uint64_t handle, struct shared_pool pool) {
    pool_numbers_lock();
    if (pool.number != 0) put(handle, pool);
    pool_numbers_unlock();
}

struct shared_pool pool_numbers_take(uint64_t handle) {
    pool_numbers_lock();
    struct shared_pool pool = of(ledger_take(&pools, handle));
    pool_numbers_unlock();
    return pool;
}
