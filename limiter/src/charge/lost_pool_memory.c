#include "charge/lost_pool_memory.h"

#include "container/container.h"
#include "region/account.h"

static uint64_t lost_of(const struct pool *pool) {
    uint64_t number = __atomic_load_n(&pool->number, __ATOMIC_RELAXED);
    return number != 0 ? exported_lost(number) : 0;
}

bool lost_is_due(const struct pool *pool) { return lost_of(pool) != __atomic_load_n(&pool->lost, __ATOMIC_RELAXED); }

void lost_charge(struct region *region, struct pool *pool) {
    uint64_t lost = lost_of(pool);
    int slot = place_slot(region);
    if (lost == pool->lost) return;
    account_release(region, slot, pool->card, pool->lost);
    account_unmark_managed(region, slot, pool->card, pool->lost);
    account_charge(region, slot, pool->card, lost);
    account_mark_managed(region, slot, pool->card, lost);
    __atomic_store_n(&pool->lost, lost, __ATOMIC_RELAXED);
}

void lost_charge_on(struct region *region, int card) {
    struct pool *pool;
    for (unsigned at = 0; exported_any() && (pool = pools_next(card, &at));) lost_charge(region, pool);
}
