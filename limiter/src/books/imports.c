#include "books/imports.h"

#include <pthread.h>

#include "books/hash_table.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger pointers; /* under the mutex: by address, `other` is the pool */
static bool is_any;            /* atomically: never unset */

void imported_lock(void) { pthread_mutex_lock(&mutex); }

void imported_unlock(void) { pthread_mutex_unlock(&mutex); }

void imported_forget_all(void) {
    ledger_clear(&pointers);
    is_any = false;
}

bool imported_any(void) { return __atomic_load_n(&is_any, __ATOMIC_ACQUIRE); }

/* One that is opened twice has one address, and is freed once. */
bool imported_add(uint64_t pool, uint64_t address) {
    imported_lock();
    bool kept = ledger_put(&pointers, (struct ledger_entry){.key = address, .other = pool});
    __atomic_store_n(&is_any, true, __ATOMIC_RELEASE);
    imported_unlock();
    return kept;
}

void imported_free(uint64_t address) {
    imported_lock();
    ledger_take(&pointers, address);
    imported_unlock();
}

bool imported_end(uint64_t pool) {
    imported_lock();
    bool any = pool != 0 && ledger_take_all(&pointers, pool);
    imported_unlock();
    return any;
}
