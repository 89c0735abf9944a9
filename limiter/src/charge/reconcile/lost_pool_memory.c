#include "charge/reconcile/lost_pool_memory.h"

#include "books/pools/exports.h"
#include "container/container.h"
#include "region/account.h"

static uint64_t lost_bytes(const struct pool *pool) {
    uint64_t number = __atomic_load_n(&pool->id, __ATOMIC_RELAXED);
    return number != 0 ? exports_lost_bytes(number) : 0;
}

bool lost_pool_memory_has_changed(const struct pool *pool) {
    return lost_bytes(pool) != __atomic_load_n(&pool->lost_charged, __ATOMIC_RELAXED);
}

void lost_pool_memory_charge(struct region *region, struct pool *pool) {
    uint64_t lost = lost_bytes(pool);
    int slot = container_slot(region);
    if (lost == pool->lost_charged) return;
    account_replace(region, slot, pool->card, pool->lost_charged, lost);
    account_unmark_managed(region, slot, pool->card, pool->lost_charged);
    account_mark_managed(region, slot, pool->card, lost);
    __atomic_store_n(&pool->lost_charged, lost, __ATOMIC_RELAXED);
}

void lost_pool_memory_charge_card(struct region *region, int card) {
    struct pool *pool;
    for (unsigned cursor = 0; exports_any() && (pool = pools_next(card, &cursor));)
        lost_pool_memory_charge(region, pool);
}
