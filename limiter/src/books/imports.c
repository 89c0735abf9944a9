#include "books/imports.h"

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table pointers; /* under the mutex: by address, `other` is the pool */
static bool is_any;                /* atomically: never unset */

static void forget(void) {
    hash_table_clear(&pointers);
    is_any = false;
}
FORGET_IN_CHILD(forget);

bool imports_any(void) { return __atomic_load_n(&is_any, __ATOMIC_ACQUIRE); }

/* One that is opened twice has one address, and is freed once. */
bool imports_add(uint64_t pool, uint64_t address) {
    lock_take(LOCK_IMPORTS);
    bool kept = hash_table_put(&pointers, (struct hash_table_entry){.key = address, .other = pool});
    __atomic_store_n(&is_any, true, __ATOMIC_RELEASE);
    lock_release(LOCK_IMPORTS);
    return kept;
}

void imports_free(uint64_t address) {
    lock_take(LOCK_IMPORTS);
    hash_table_take(&pointers, address);
    lock_release(LOCK_IMPORTS);
}

bool imports_end_pool(uint64_t pool) {
    lock_take(LOCK_IMPORTS);
    bool any = pool != 0 && hash_table_take_all(&pointers, pool);
    lock_release(LOCK_IMPORTS);
    return any;
}
