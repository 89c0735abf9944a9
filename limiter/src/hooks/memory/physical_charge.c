#include "hooks/memory/physical_charge.h"

#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "hooks/memory/memory_export_rows.h"

static void end_import(struct physical_memory change) {
    memory_export_rows_drop(change.group);
    reconcile_once(container_region()->cards[change.card].uuid, 1);
}

static void end_pool(struct physical_memory change) {
    release_shared((struct pending_export_end){.shared = change.pool,
                                               .card = change.card,
                                               .bytes = change.bytes,
                                               .managed = change.bytes,
                                               .kind = END_OF_POOL});
}

static void end_export(struct physical_memory change) {
    uint64_t group = memory_export_rows_physical_group(change.exported);
    memory_export_rows_end(group, change.card, change.bytes, change.was_hidden ? change.bytes : 0);
}

/* Memory that another process may still hold is charged there, or to the card, in the same hold of LOCK_REGION in which
 * it is released here. */
static void release_freed(struct physical_memory change) {
    if (change.group)
        end_import(change);
    else if (change.pool)
        end_pool(change);
    else if (change.exported)
        end_export(change);
    else
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
