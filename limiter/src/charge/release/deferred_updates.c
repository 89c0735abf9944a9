#include "charge/release/deferred_updates.h"

#include <stdbool.h>
#include <string.h>

#include "process/fork.h"
#include "region/account.h"

/* Atomic; the sequentially consistent `is_any` publishes the sums. */
static uint64_t sums[UPDATES][REGION_CARDS];
static bool is_any;

static void forget(void) {
    memset(sums, 0, sizeof sums);
    is_any = false;
}
FORGET_IN_CHILD(forget);

void deferred_updates_add(enum update update, int card, uint64_t bytes) {
    if (card < 0 || card >= REGION_CARDS || bytes == 0) return;
    __atomic_fetch_add(&sums[update][card], bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&is_any, true, __ATOMIC_SEQ_CST);
}

void deferred_updates_apply(struct region *region, int slot) {
    static void (*const apply[UPDATES])(struct region *, int, int, uint64_t) = {
        [UPDATE_CHARGE] = account_charge,
        [UPDATE_MARK_MANAGED] = account_mark_managed,
        [UPDATE_RELEASE] = account_release,
        [UPDATE_UNMARK_MANAGED] = account_unmark_managed,
    };
    if (!__atomic_exchange_n(&is_any, false, __ATOMIC_SEQ_CST)) return;
    for (int update = 0; update < UPDATES; update++)
        for (int card = 0; card < REGION_CARDS; card++) {
            if (__atomic_load_n(&sums[update][card], __ATOMIC_RELAXED) == 0) continue; /* an exchange takes longer */
            apply[update](region, slot, card, __atomic_exchange_n(&sums[update][card], 0, __ATOMIC_RELAXED));
        }
}
