#include "hooks/memory/physical_charge.h"

#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/charge.h"

/* Memory that another process may still hold is charged there before it is released here; for a pool's memory, both
 * happen in the same hold of LOCK_REGION. */
static void release_freed(struct physical_memory change) {
    if (change.pool) {
        release_shared_pool((struct pending_pool_end){change.pool, change.card, change.bytes, change.bytes, 0});
        return;
    }
    if (change.is_exported) reconcile_others();
    (change.was_hidden ? release_managed : release_charge)(change.card, change.bytes);
}

void physical_charge_apply(struct physical_memory change) {
    if (change.bytes == 0) return;
    if (change.state == MEMORY_FREED) release_freed(change);
    if (change.state == MEMORY_HIDDEN) charge_mark_managed(change.card, change.bytes);
    if (change.state == MEMORY_SHOWN) charge_unmark_managed(change.card, change.bytes);
}

/* The last copy of an exported descriptor may be closed in any process, without a call that is wrapped. */
static void sweep(void) {
    struct physical_memory change;
    while (physical_memory_sweep(&change)) physical_charge_apply(change);
}

static void correct(const uint8_t uuid[UUID_SIZE], unsigned own_calls) {
    (void)uuid, (void)own_calls;
    sweep();
}

static void refresh(const uint8_t uuid[UUID_SIZE], int card, bool is_after_reaping) {
    (void)uuid, (void)card;
    if (is_after_reaping) sweep();
}

const struct memory_class physical_memory_class = {.correct = correct, .refresh = refresh};
