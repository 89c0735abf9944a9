#include "books/pointers/ipc_imports.h"

#include <stdlib.h>

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table imports; /* LOCK_IPC_IMPORTS; key: the address, value: the group, count: of its openings */

static void forget(void) { hash_table_clear(&imports); }
FORGET_IN_CHILD(forget);

void ipc_imports_add(uint64_t address, uint64_t group) {
    HOLD_LOCK(LOCK_IPC_IMPORTS);
    struct hash_table_entry import = hash_table_find(&imports, address);
    hash_table_put(&imports, (struct hash_table_entry){.key = address, .value = group, .count = import.count + 1});
}

uint64_t ipc_imports_take(uint64_t address) {
    HOLD_LOCK(LOCK_IPC_IMPORTS);
    struct hash_table_entry import = hash_table_take(&imports, address);
    if (import.count > 1) {
        import.count--;
        hash_table_put(&imports, import);
    }
    return import.value;
}

uint64_t *ipc_imports_list(size_t *count) {
    HOLD_LOCK(LOCK_IPC_IMPORTS);
    uint64_t *list = imports.count ? malloc(imports.count * sizeof *list) : NULL;
    *count = 0;
    for (size_t i = 0; list && i < imports.size; i++)
        if (imports.entries[i].key != 0) list[(*count)++] = imports.entries[i].key;
    return list;
}
