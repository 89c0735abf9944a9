#include "region/pending_export_ends.h"

#include <stdlib.h>

#include "process/fork.h"
#include "process/lock.h"
#include "region/account.h"

/* Under LOCK_EXPORT_ENDS. In order of arrival, because a pool may have two entries. */
static struct pending_export_end *ends;
static size_t count; /* atomic; written under LOCK_EXPORT_ENDS */

static void set_count(size_t value) { __atomic_store_n(&count, value, __ATOMIC_RELEASE); }

static void forget(void) { set_count(0); }
FORGET_IN_CHILD(forget);

bool pending_export_ends_add(struct pending_export_end end) {
    HOLD_LOCK(LOCK_EXPORT_ENDS);
    struct pending_export_end *grown = realloc(ends, (count + 1) * sizeof *ends);
    if (grown) {
        ends = grown;
        ends[count] = end;
        set_count(count + 1);
    }
    return grown != NULL;
}

static void finish_pool(struct region *region, int slot, const struct pending_export_end *end) {
    if (end->kept == 0) {
        account_end_pool_exports(region, slot, end->shared, end->card, end->bytes);
        return;
    }
    account_replace(region, slot, end->card, end->bytes, end->kept);
    account_mark_managed(region, slot, end->card, end->kept);
}

static void finish(struct region *region, int slot, const struct pending_export_end *end) {
    account_unmark_managed(region, slot, end->card, end->managed);
    if (end->kind == END_OF_POOL) finish_pool(region, slot, end);
    if (end->kind == END_OF_EXPORT) account_end_memory_export(region, slot, end->shared, end->card, end->bytes);
    if (end->kind == END_OF_IMPORT) account_drop_memory_import(region, slot, end->shared);
}

void pending_export_ends_apply(struct region *region, int slot) {
    if (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0) return;
    HOLD_LOCK(LOCK_EXPORT_ENDS);
    for (size_t i = 0; i < count; i++) finish(region, slot, &ends[i]);
    set_count(0);
}
