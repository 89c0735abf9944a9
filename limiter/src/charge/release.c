#include "charge/release.h"

#include <string.h>

#include "container/container.h"
#include "process/fork.h"
#include "region/account.h"

/* Releases that wait for LOCK_REGION, in bytes by the region's row. Atomic: any thread adds, the holder of the lock
 * takes; the sequentially consistent `is_any_deferred` publishes them. */
static uint64_t deferred[REGION_CARDS];
static uint64_t deferred_managed[REGION_CARDS]; /* part of `deferred` that is marked as managed */
static bool is_any_deferred;

static void forget(void) {
    memset(deferred, 0, sizeof deferred);
    memset(deferred_managed, 0, sizeof deferred_managed);
    is_any_deferred = false;
}
FORGET_IN_CHILD(forget);

void release_apply_deferred(struct region *region, int slot) {
    pending_pool_ends_apply(region, slot);
    if (!__atomic_exchange_n(&is_any_deferred, false, __ATOMIC_SEQ_CST)) return;
    for (int card = 0; card < REGION_CARDS; card++) {
        if (__atomic_load_n(&deferred[card], __ATOMIC_RELAXED) == 0) continue;
        account_release(region, slot, card, __atomic_exchange_n(&deferred[card], 0, __ATOMIC_RELAXED));
        account_unmark_managed(region, slot, card, __atomic_exchange_n(&deferred_managed[card], 0, __ATOMIC_RELAXED));
    }
}

static void apply_now(struct region *region) {
    if (region_lock(region, REGION_LOCK_MS) != 0) return;
    int slot = container_slot(region);
    if (slot >= 0) release_apply_deferred(region, slot);
    region_unlock(region);
}

static void defer(int card, uint64_t bytes, uint64_t managed) {
    struct region *region = container_region();
    if (!region || card < 0 || card >= REGION_CARDS) return;
    __atomic_fetch_add(&deferred_managed[card], managed, __ATOMIC_RELAXED);
    __atomic_fetch_add(&deferred[card], bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&is_any_deferred, true, __ATOMIC_SEQ_CST);
    apply_now(region);
}

void release_charge(int card, uint64_t bytes) { defer(card, bytes, 0); }

void release_managed(int card, uint64_t bytes) { defer(card, bytes, bytes); }

void release_shared_pool(struct pending_pool_end end) {
    struct region *region = container_region();
    if (region && pending_pool_ends_add(end)) apply_now(region);
}
