/* The mutex is taken under the region's lock, and that never under the mutex. */
#include "share_ends.h"

#include <pthread.h>

#include "account.h"
#include "ledger.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ledger ends; /* under the mutex: by pool, `other` is what is marked as managed */
static bool are_any;       /* atomically */

void share_ends_lock(void) { pthread_mutex_lock(&mutex); }

void share_ends_unlock(void) { pthread_mutex_unlock(&mutex); }

void share_ends_forget_all(void) {
    ledger_clear(&ends);
    are_any = false;
}

bool share_ends_add(struct share_end end) {
    share_ends_lock();
    bool kept = ledger_put(&ends, (struct ledger_entry){end.pool, end.bytes, end.managed, 0, end.card});
    __atomic_store_n(&are_any, true, __ATOMIC_RELEASE);
    share_ends_unlock();
    return kept;
}

static void finish(struct region *region, int slot, const struct ledger_entry *end) {
    if (end->key == 0) return;
    account_end_shares(region, slot, end->key, end->card, end->bytes);
    account_unmark_managed(region, slot, end->card, end->other);
}

void share_ends_catch_up(struct region *region, int slot) {
    if (!__atomic_load_n(&are_any, __ATOMIC_ACQUIRE)) return;
    share_ends_lock();
    __atomic_store_n(&are_any, false, __ATOMIC_RELAXED);
    for (size_t i = 0; i < ends.size; i++) finish(region, slot, &ends.entries[i]);
    ledger_clear(&ends);
    share_ends_unlock();
}
