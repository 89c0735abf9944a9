#include "books/ipc_exports.h"

#include <pthread.h>

#include "books/hash_table.h"
#include "books/pointers.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger chunks; /* under the mutex: those that have a handle */

void ipc_lock(void) { pthread_mutex_lock(&mutex); }

void ipc_unlock(void) { pthread_mutex_unlock(&mutex); }

void ipc_forget_all(void) { ledger_clear(&chunks); }

/* Never 0, which is the ledger's mark of emptiness. */
static uint64_t chunk_of(uint64_t pointer) { return pointer / GRANULE + 1; }

void ipc_note(uint64_t pointer) {
    ipc_lock();
    ledger_put(&chunks, (struct ledger_entry){.key = chunk_of(pointer)});
    ipc_unlock();
}

bool ipc_end(uint64_t pointer) {
    ipc_lock();
    bool found = ledger_take(&chunks, chunk_of(pointer)).key != 0;
    ipc_unlock();
    return found;
}
