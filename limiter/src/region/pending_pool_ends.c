/* The mutex is taken under the region's lock, and that never under the mutex. */
#include "region/pending_pool_ends.h"

#include <pthread.h>
#include <stdlib.h>

#include "region/account.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pending_pool_end *ends; /* under the mutex: in their order, for one pool may have two */
static size_t count;                  /* under the mutex when written, else atomically */

void pending_pool_ends_lock(void) { pthread_mutex_lock(&mutex); }

void pending_pool_ends_unlock(void) { pthread_mutex_unlock(&mutex); }

/* Under the mutex. */
static void set_count(size_t now) { __atomic_store_n(&count, now, __ATOMIC_RELEASE); }

void pending_pool_ends_forget_all(void) { set_count(0); }

bool pending_pool_ends_add(struct pending_pool_end end) {
    pending_pool_ends_lock();
    struct pending_pool_end *room = realloc(ends, (count + 1) * sizeof *ends);
    if (room) {
        ends = room;
        ends[count] = end;
        set_count(count + 1);
    }
    pending_pool_ends_unlock();
    return room != NULL;
}

static void finish(struct region *region, int slot, const struct pending_pool_end *end) {
    account_unmark_managed(region, slot, end->card, end->managed);
    if (end->kept == 0) {
        account_end_pool_exports(region, slot, end->pool, end->card, end->bytes);
        return;
    }
    account_release(region, slot, end->card, end->bytes);
    account_charge(region, slot, end->card, end->kept);
    account_mark_managed(region, slot, end->card, end->kept);
}

void pending_pool_ends_apply(struct region *region, int slot) {
    if (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0) return;
    pending_pool_ends_lock();
    for (size_t i = 0; i < count; i++) finish(region, slot, &ends[i]);
    set_count(0);
    pending_pool_ends_unlock();
}
