#include "imported.h"

#include <pthread.h>

#include "ledger.h"

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

/* Under the mutex. Its key is 0 where there is none. */
static struct ledger_entry any_of(uint64_t pool) {
    for (size_t i = 0; i < pointers.size; i++)
        if (pointers.entries[i].key != 0 && pointers.entries[i].other == pool) return pointers.entries[i];
    return (struct ledger_entry){0};
}

bool imported_end(uint64_t pool) {
    bool any = false;
    imported_lock();
    for (struct ledger_entry left = any_of(pool); pool != 0 && left.key != 0; left = any_of(pool)) {
        ledger_take(&pointers, left.key);
        any = true;
    }
    imported_unlock();
    return any;
}
