#include "books/pointers/ipc_exports.h"

#include "books/hash_table.h"
#include "books/pointers/pointers.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table chunks; /* LOCK_IPC_EXPORTS; key: a chunk with an IPC handle, value: its number */
static uint64_t last_number;     /* LOCK_IPC_EXPORTS; the last number that was given */

static void forget(void) { hash_table_clear(&chunks); }
FORGET_IN_CHILD(forget);

/* Never 0, which marks an empty place in a hash table. */
static uint64_t chunk_of(uint64_t pointer) { return pointer / GRANULARITY + 1; }

uint64_t ipc_exports_add(uint64_t pointer) {
    HOLD_LOCK(LOCK_IPC_EXPORTS);
    struct hash_table_entry chunk = hash_table_find(&chunks, chunk_of(pointer));
    if (chunk.key != 0) return chunk.value;
    chunk = (struct hash_table_entry){.key = chunk_of(pointer), .value = ++last_number};
    return hash_table_put(&chunks, chunk) ? chunk.value : 0;
}

uint64_t ipc_exports_take(uint64_t pointer) {
    HOLD_LOCK(LOCK_IPC_EXPORTS);
    return hash_table_take(&chunks, chunk_of(pointer)).value;
}
