#include "hooks/pools/pool_charge.h"

#include "books/exports.h"
#include "charge/lost_pool_memory.h"
#include "charge/reconcile.h"
#include "charge/release.h"
#include "container/container.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "region/account.h"
#include "region/region.h"

static uint32_t settled_now(const struct pool *pool) {
    return pool->measured ? __atomic_load_n(pool->measured, __ATOMIC_ACQUIRE) : 0;
}

/* Whether nobody has measured this process otherwise since the pool was charged: only then is the difference to what is
 * charged what is missing. Managed memory is not measured. */
static bool is_ours_to_say(const struct pool *pool) {
    return pool->is_managed || __atomic_load_n(&pool->settled, __ATOMIC_RELAXED) == settled_now(pool);
}

/* Whether it is to be charged anew, which has `reserved` so much. */
static bool is_due(const struct pool *pool, uint64_t reserved) {
    return reserved != __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED) || !is_ours_to_say(pool) ||
           lost_pool_memory_is_due(pool);
}

/* The functions down to the next line are called under the pools' lock. */

/* Under the region's lock too. */
static void exchange(struct region *region, const struct pool *pool, uint64_t claimed, uint64_t reserved) {
    int slot = container_slot(region);
    account_release(region, slot, pool->card, pool->reserved + claimed);
    account_charge(region, slot, pool->card, reserved);
    if (!pool->is_managed) return;
    account_unmark_managed(region, slot, pool->card, pool->reserved);
    account_mark_managed(region, slot, pool->card, reserved);
}

/* Charges what the pool has reserved in place of what was charged for it and claimed for its growth. */
static bool charge(struct pool *pool, uint64_t claimed, bool is_forced) {
    struct region *region = container_region();
    if (!region || region_lock(region, REGION_LOCK_MS) != 0) return false;
    bool is_ours = is_forced || is_ours_to_say(pool);
    uint64_t reserved = pool->seen;
    lost_pool_memory_charge(region, pool);
    if (is_ours) {
        exchange(region, pool, claimed, reserved);
        __atomic_store_n(&pool->reserved, reserved, __ATOMIC_RELAXED);
        __atomic_store_n(&pool->settled, settled_now(pool), __ATOMIC_RELAXED);
    }
    region_unlock(region);
    return is_ours;
}

/* The functions from here on take it. */

static bool look(struct pool *pool, uint64_t claimed, bool is_forced) {
    pools_lock();
    pools_read_reserved(pool);
    bool charged = charge(pool, claimed, is_forced);
    pools_unlock();
    return charged;
}

/* A measurement charges all pools anew. Where none can be had, the difference must do. */
void pool_charge_update(struct pool *pool, const struct reservation *reservation, unsigned own) {
    if (look(pool, reservation->bytes, false)) return;
    if (reconcile_own(pool->uuid, own)) return;
    if (!look(pool, reservation->bytes, true) && reservation->bytes)
        release_charge(reservation->card, reservation->bytes);
}

bool pool_charge_is_due(const struct pool *pool) { return is_due(pool, pools_reserved(pool)); }

void pool_charge_check(struct pool *pool) {
    if (pool && pool->is_counted && pool_charge_is_due(pool)) pool_charge_update(pool, &(struct reservation){0}, 0);
}

/* Under the pools' lock. Whether all could be charged what they have reserved. */
static bool charge_all(int card, bool are_all_asked) {
    struct pool *pool;
    bool all = true;
    for (unsigned at = 0; (pool = pools_next(card, &at));) {
        if (are_all_asked || pools_may_have_shrunk(pool)) pools_read_reserved(pool);
        if (is_due(pool, pool->seen)) all &= charge(pool, 0, false);
    }
    return all;
}

static bool look_on(int card, bool are_all_asked) {
    pools_lock();
    bool charged = charge_all(card, are_all_asked);
    pools_unlock();
    return charged;
}

static void correct(const uint8_t uuid[UUID_SIZE], unsigned own) {
    const struct region *region = container_region();
    if (region && pools_any() && !look_on(account_find_card(region, uuid), true)) reconcile_own(uuid, own);
}

/* Pools that synchronisations may have made shrink are asked what they have reserved. */
static void refresh(const uint8_t uuid[UUID_SIZE], int card, bool is_after_reaping) {
    (void)is_after_reaping;
    if (!pools_any_may_have_shrunk(card) && !exports_any()) return;
    if (!look_on(card, false)) reconcile_own(uuid, 0);
}

static void trim_all(int card) {
    struct pool *pool;
    pools_lock();
    for (unsigned at = 0; (pool = pools_next(card, &at));) REAL(cuMemPoolTrimTo)(pool->handle, 0);
    pools_unlock();
}

/* The driver trims its pools itself before it says that the card is full (measured on an H200, driver 580). */
static void trim(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = container_region();
    if (!region || !pools_any()) return;
    CAPTURE_ALLOWS(trim_all(account_find_card(region, uuid)));
}

const struct memory_class pool_memory_class = {.correct = correct, .trim = trim, .refresh = refresh};
