#include "books/pools/imports.h"

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table pointers; /* LOCK_IMPORTS; key: the address, value: the pool */
static bool is_any;                /* atomic; never reset */

static void forget(void) {
    hash_table_clear(&pointers);
    is_any = false;
}
FORGET_IN_CHILD(forget);

bool imports_any(void) { return __atomic_load_n(&is_any, __ATOMIC_ACQUIRE); }

/* A pointer that is imported twice has one address and is freed once, so it has one entry. */
bool imports_add(uint64_t pool, uint64_t address) {
    HOLD_LOCK(LOCK_IMPORTS);
    bool is_added = hash_table_put(&pointers, (struct hash_table_entry){.key = address, .value = pool});
    __atomic_store_n(&is_any, true, __ATOMIC_RELEASE);
    return is_added;
}

void imports_free(uint64_t address) {
    HOLD_LOCK(LOCK_IMPORTS);
    hash_table_take(&pointers, address);
}

bool imports_end_pool(uint64_t pool) {
    HOLD_LOCK(LOCK_IMPORTS);
    return pool != 0 && hash_table_take_all(&pointers, pool);
}
