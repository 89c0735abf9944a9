#include "hooks/memory/physical_charge.h"

#include "charge/charge.h"
#include "charge/reconcile.h"

/* What another process may hold on is charged there before it is taken back here, or with it. */
static void take_back(struct backing change) {
    if (change.pool) {
        charge_end_pool((struct share_end){change.pool, change.card, change.bytes, change.bytes, 0});
        return;
    }
    if (change.is_exported) settle_others();
    (change.was_hidden ? charge_release_managed : charge_release)(change.card, change.bytes);
}

void changes_charge(struct backing change) {
    if (change.bytes == 0) return;
    if (change.fate == FREED) take_back(change);
    if (change.fate == HIDDEN) charge_mark_managed(change.card, change.bytes);
    if (change.fate == SHOWN) charge_unmark_managed(change.card, change.bytes);
}

void changes_look(void) {
    struct backing change;
    while (backings_sweep(&change)) changes_charge(change);
}
