#include "hooks/pools/pool_charge.h"

#include "books/pools/exports.h"
#include "charge/reconcile/lost_pool_memory.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "common/arithmetic.h"
#include "container/container.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "process/lock.h"
#include "region/account.h"
#include "region/region.h"

static uint32_t corrections_now(const struct pool *pool) {
    return pool->corrections ? __atomic_load_n(pool->corrections, __ATOMIC_ACQUIRE) : 0;
}

bool pool_charge_is_uncorrected(const struct pool *pool) {
    return pool->is_managed ||
           __atomic_load_n(&pool->corrections_when_charged, __ATOMIC_RELAXED) == corrections_now(pool);
}

static bool is_due(const struct pool *pool, uint64_t reserved) {
    return reserved != __atomic_load_n(&pool->charged, __ATOMIC_ACQUIRE) || !pool_charge_is_uncorrected(pool) ||
           lost_pool_memory_has_changed(pool);
}

/* A correction may have taken the bytes off already by which the pool has shrunk since it was charged. Without another
 * measurement they are not taken off again, and the charge may be too high until NVML answers. The caller holds
 * LOCK_POOLS and LOCK_REGION. */
static void replace_charge(struct region *region, const struct pool *pool, uint64_t reserved_ahead) {
    int slot = container_slot(region);
    uint64_t former = pool_charge_is_uncorrected(pool) ? pool->charged : min_u64(pool->charged, pool->last_reserved);
    account_replace(region, slot, pool->card, former + reserved_ahead, pool->last_reserved);
    if (!pool->is_managed) return;
    account_unmark_managed(region, slot, pool->card, pool->charged);
    account_mark_managed(region, slot, pool->card, pool->last_reserved);
}

/* Charges what the pool was last seen to have reserved, in place of its former charge and of what was reserved ahead
 * for its growth. False, without a change, if a measurement has corrected the charge since and `is_forced` is not set.
 * The caller holds LOCK_POOLS. */
static bool charge_reserved(struct pool *pool, uint64_t reserved_ahead, bool is_forced) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (!region) return false;
    bool is_charged_here = is_forced || pool_charge_is_uncorrected(pool);
    lost_pool_memory_charge(region, pool);
    if (is_charged_here) {
        replace_charge(region, pool, reserved_ahead);
        pools_set_charged(pool, corrections_now(pool));
    }
    return is_charged_here;
}

static bool read_and_charge(struct pool *pool, uint64_t reserved_ahead, bool is_forced) {
    HOLD_LOCK(LOCK_POOLS);
    pools_read_reserved(pool);
    return charge_reserved(pool, reserved_ahead, is_forced);
}

/* After a correction a new measurement is needed, which charges all pools. If none can be made, the difference is
 * charged nevertheless. */
void pool_charge_update(struct pool *pool, const struct reservation *reservation, unsigned own_calls) {
    if (read_and_charge(pool, reservation->bytes, false)) return;
    if (reconcile_own(pool->uuid, own_calls)) return;
    if (!read_and_charge(pool, reservation->bytes, true) && reservation->bytes)
        release_charge(reservation->card, reservation->bytes);
}

bool pool_charge_is_due(const struct pool *pool) { return is_due(pool, pools_reserved(pool)); }

void pool_charge_check(struct pool *pool) {
    if (pool && pool->is_counted && pool_charge_is_due(pool)) pool_charge_update(pool, &(struct reservation){0}, 0);
}

/* Returns whether every pool's charge is up to date, so that no measurement is needed. The caller holds LOCK_POOLS. */
static bool charge_pools(int card, bool is_every_pool_read) {
    struct pool *pool;
    bool are_all_charged = true;
    for (unsigned cursor = 0; (pool = pools_next(card, &cursor));) {
        if (is_every_pool_read || pools_may_have_shrunk(pool)) pools_read_reserved(pool);
        if (is_due(pool, pool->last_reserved)) are_all_charged &= charge_reserved(pool, 0, false);
    }
    return are_all_charged;
}

static bool charge_card(int card, bool is_every_pool_read) {
    HOLD_LOCK(LOCK_POOLS);
    return charge_pools(card, is_every_pool_read);
}

static void correct(const uint8_t uuid[UUID_SIZE], unsigned own_calls) {
    const struct region *region = container_region();
    if (region && pools_any() && !charge_card(account_find_card(region, uuid), true)) reconcile_own(uuid, own_calls);
}

/* Only pools that hold more than their release threshold shrink at a synchronisation, so only those are read. */
static void refresh(const uint8_t uuid[UUID_SIZE], int card, bool is_after_reaping) {
    (void)is_after_reaping;
    if (!pools_any_may_have_shrunk(card) && !exports_any()) return;
    if (!charge_card(card, false)) reconcile_own(uuid, 0);
}

static void trim_all(int card) {
    struct pool *pool;
    HOLD_LOCK(LOCK_POOLS);
    for (unsigned cursor = 0; (pool = pools_next(card, &cursor));) REAL(cuMemPoolTrimTo)(pool->handle, 0);
}

/* The driver trims pools by itself only before it reports a full card (measured on an H200, driver 580), so a limit
 * below the card's size needs this call. */
static void trim(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = container_region();
    if (!region || !pools_any()) return;
    CAPTURE_ALLOWS(trim_all(account_find_card(region, uuid)));
}

const struct memory_class pool_memory_class = {.correct = correct, .trim = trim, .refresh = refresh};
