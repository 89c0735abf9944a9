#include "books/imports.h"

#include <pthread.h>

#include "books/hash_table.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hash_table pointers; /* under the mutex: by address, `other` is the pool */
static bool is_any;                /* atomically: never unset */

void imports_lock(void) { pthread_mutex_lock(&mutex); }

void imports_unlock(void) { pthread_mutex_unlock(&mutex); }

void imports_forget_all(void) {
    hash_table_clear(&pointers);
    is_any = false;
}

bool imports_any(void) { return __atomic_load_n(&is_any, __ATOMIC_ACQUIRE); }

/* One that is opened twice has one address, and is freed once. */
bool imports_add(uint64_t pool, uint64_t address) {
    imports_lock();
    bool kept = hash_table_put(&pointers, (struct hash_table_entry){.key = address, .other = pool});
    __atomic_store_n(&is_any, true, __ATOMIC_RELEASE);
    imports_unlock();
    return kept;
}

void imports_free(uint64_t address) {
    imports_lock();
    hash_table_take(&pointers, address);
    imports_unlock();
}

bool imports_end_pool(uint64_t pool) {
    imports_lock();
    bool any = pool != 0 && hash_table_take_all(&pointers, pool);
    imports_unlock();
    return any;
}
