#include "books/array_records.h"

#include <pthread.h>

#include "books/hash_table.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger outlays; /* under the mutex: by handle; `other` is the device */

void outlays_lock(void) { pthread_mutex_lock(&mutex); }

void outlays_unlock(void) { pthread_mutex_unlock(&mutex); }

void outlays_forget_all(void) { ledger_clear(&outlays); }

bool outlays_add(uint64_t handle, struct outlay outlay) {
    struct ledger_entry entry = {handle, outlay.bytes, (uint64_t)outlay.device, 0, outlay.card};
    outlays_lock();
    bool kept = ledger_put(&outlays, entry);
    outlays_unlock();
    return kept;
}

bool outlays_take(uint64_t handle, struct outlay *outlay) {
    outlays_lock();
    struct ledger_entry entry = ledger_take(&outlays, handle);
    outlays_unlock();
    *outlay = (struct outlay){entry.card, (int)entry.other, entry.bytes};
    return entry.key != 0;
}
