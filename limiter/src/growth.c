#include "growth.h"

#include "account.h"
#include "attempt.h"
#include "capture.h"
#include "hooks.h"
#include "lost.h"
#include "place.h"
#include "settle.h"

/* What one allocation takes of its pool is a multiple of this; none is as large as the other. */
#define UNIT     512ULL
#define TOO_MUCH (1ULL << 48)

/* What the pool lacks for so many bytes, at least: what is charged for it is room, whether it is reserved still or
 * again; but where that is not enough, what it has given back may be taken off it before more is charged, and is none.
 * Not all frees are counted, so what is in use by our sums is too much one day: then the driver is asked. */
static uint64_t lacking(struct pool *pool, uint64_t bytes) {
    if (bytes >= TOO_MUCH) return TOO_MUCH;
    bytes = round_up(bytes, UNIT);
    uint64_t charged = __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED);
    if (pools_use_more(pool, bytes) <= charged) return 0;
    uint64_t needed = pools_used(pool) + bytes;
    pools_use(pool, needed);
    if (needed <= charged) return 0;
    uint64_t reserved = pools_reserved(pool);
    return round_up(needed - (reserved < charged ? reserved : charged), POOL_STEP);
}

/* A pool grows by what it lacks where its free memory lies at its end, and by the whole allocation where it is in
 * pieces: that is charged if it fits, else the less, and what has become of it is seen afterwards. */
static bool claim(struct growth *growth, uint64_t bytes, uint64_t lack) {
    uint64_t most = bytes < TOO_MUCH ? round_up(bytes, POOL_STEP) : TOO_MUCH;
    return charge_try(growth->pool->uuid, most, &growth->claim) ||
           charge_reserve(growth->what, growth->pool->uuid, lack < most ? lack : most, &growth->claim);
}

struct growth growth_begin(const char *what, struct pool *pool, uint64_t bytes, bool (*is_captured)(CUstream),
                           CUstream stream) {
    struct growth growth = {.what = what, .pool = pool, .span = -1};
    if (exported_any()) growth_look(pool); /* what it has given back is not seen any more once it has grown */
    uint64_t lack = pool && pool->is_counted ? lacking(pool, bytes) : 0;
    if (lack == 0 || is_captured(stream)) return growth;
    growth.span = charge_enter();
    growth.is_claimed = claim(&growth, bytes, lack);
    growth.is_refused = !growth.is_claimed;
    if (growth.is_refused) charge_leave(growth.span);
    return growth;
}

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
    return reserved != __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED) || !is_ours_to_say(pool) || lost_is_due(pool);
}

/* The functions down to the next line are called under the pools' lock. */

/* Under the region's lock too. */
static void exchange(struct region *region, const struct pool *pool, uint64_t claimed, uint64_t reserved) {
    int slot = place_slot(region);
    account_release(region, slot, pool->card, pool->reserved + claimed);
    account_charge(region, slot, pool->card, reserved);
    if (!pool->is_managed) return;
    account_unmark_managed(region, slot, pool->card, pool->reserved);
    account_mark_managed(region, slot, pool->card, reserved);
}

/* Charges what the pool has reserved in place of what was charged for it and claimed for its growth. */
static bool charge(struct pool *pool, uint64_t claimed, bool is_forced) {
    struct region *region = place_region();
    if (!region || region_lock(region, CHARGE_LOCK_MS) != 0) return false;
    bool is_ours = is_forced || is_ours_to_say(pool);
    uint64_t reserved = pool->seen;
    lost_charge(region, pool);
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
    pools_see_one(pool);
    bool charged = charge(pool, claimed, is_forced);
    pools_unlock();
    return charged;
}

/* A measurement charges all pools anew. Where none can be had, the difference must do. */
static void settle(struct pool *pool, const struct claim *claim, unsigned own) {
    if (look(pool, claim->bytes, false)) return;
    if (settle_own(pool->uuid, own)) return;
    if (!look(pool, claim->bytes, true) && claim->bytes) charge_release(claim->card, claim->bytes);
}

static bool is_changed(const struct pool *pool) { return is_due(pool, pools_reserved(pool)); }

static bool is_over(const struct pool *pool, uint64_t before) {
    const struct region *region = place_region();
    return __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED) > before &&
           account_used(region, pool->card) > charge_limit(pool->uuid);
}

bool growth_fits(struct growth *growth, CUresult result) {
    struct pool *pool = growth->pool;
    if (!pool || !pool->is_counted || (!growth->is_claimed && (result != CUDA_SUCCESS || !is_changed(pool))))
        return true;
    uint64_t before = __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED);
    settle(pool, &growth->claim, growth->is_claimed);
    charge_leave(growth->span);
    return result != CUDA_SUCCESS || !is_over(pool, before);
}

void growth_look(struct pool *pool) {
    if (pool && pool->is_counted && is_changed(pool)) settle(pool, &(struct claim){0}, 0);
}

/* Under the pools' lock. Whether all could be charged what they have reserved. */
static bool charge_all(int card) {
    uint64_t measured;
    struct pool *pool;
    bool all = true;
    if (!pools_see(card, &measured)) return true;
    for (unsigned at = 0; (pool = pools_next(card, &at));)
        if (is_due(pool, pool->seen)) all &= charge(pool, 0, false);
    return all;
}

static void charge_them(const uint8_t uuid[UUID_SIZE], int card, unsigned own) {
    pools_lock();
    bool charged = charge_all(card);
    pools_unlock();
    if (!charged) settle_own(uuid, own);
}

void growth_look_on(const uint8_t uuid[UUID_SIZE], unsigned own) {
    const struct region *region = place_region();
    if (region && pools_any()) charge_them(uuid, account_find_card(region, uuid), own);
}

static void trim_all(int card) {
    struct pool *pool;
    pools_lock();
    for (unsigned at = 0; (pool = pools_next(card, &at));) REAL(cuMemPoolTrimTo)(pool->handle, 0);
    pools_unlock();
}

void growth_trim_on(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = place_region();
    if (!region || !pools_any()) return;
    CAPTURE_ALLOWS(trim_all(account_find_card(region, uuid)));
}
