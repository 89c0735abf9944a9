#include "region/pending_pool_ends.h"

#include <stdlib.h>

#include "process/fork.h"
#include "process/lock.h"
#include "region/account.h"

/* Under LOCK_PENDING_POOL_ENDS. In order of arrival, because a pool may have two entries. */
static struct pending_pool_end *ends;
static size_t count; /* atomic; written under LOCK_PENDING_POOL_ENDS */

static void set_count(size_t value) { __atomic_store_n(&count, value, __ATOMIC_RELEASE); }

static void forget(void) { set_count(0); }
FORGET_IN_CHILD(forget);

bool pending_pool_ends_add(struct pending_pool_end end) {
    HOLD_LOCK(LOCK_PENDING_POOL_ENDS);
    struct pending_pool_end *grown = realloc(ends, (count + 1) * sizeof *ends);
    if (grown) {
        ends = grown;
        ends[count] = end;
        set_count(count + 1);
    }
    return grown != NULL;
}

static void finish(struct region *region, int slot, const struct pending_pool_end *end) {
    account_unmark_managed(region, slot, end->card, end->managed);
    if (end->kept == 0) {
        account_end_pool_exports(region, slot, end->pool, end->card, end->bytes);
        return;
    }
    account_replace(region, slot, end->card, end->bytes, end->kept);
    account_mark_managed(region, slot, end->card, end->kept);
}

void pending_pool_ends_apply(struct region *region, int slot) {
    if (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0) return;
    HOLD_LOCK(LOCK_PENDING_POOL_ENDS);
    for (size_t i = 0; i < count; i++) finish(region, slot, &ends[i]);
    set_count(0);
}
