#include "books/ipc_exports.h"

#include <pthread.h>

#include "books/hash_table.h"
#include "books/pointers.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hash_table chunks; /* under the mutex: those that have a handle */

void ipc_exports_lock(void) { pthread_mutex_lock(&mutex); }

void ipc_exports_unlock(void) { pthread_mutex_unlock(&mutex); }

void ipc_exports_forget_all(void) { hash_table_clear(&chunks); }

/* Never 0, which is the ledger's mark of emptiness. */
static uint64_t chunk_of(uint64_t pointer) { return pointer / GRANULARITY + 1; }

void ipc_exports_add(uint64_t pointer) {
    ipc_exports_lock();
    hash_table_put(&chunks, (struct hash_table_entry){.key = chunk_of(pointer)});
    ipc_exports_unlock();
}

bool ipc_exports_remove(uint64_t pointer) {
    ipc_exports_lock();
    bool found = hash_table_take(&chunks, chunk_of(pointer)).key != 0;
    ipc_exports_unlock();
    return found;
}
