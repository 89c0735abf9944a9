#include "growth.h"

#include "account.h"
#include "attempt.h"
#include "capture.h"
#include "hooks.h"
#include "lost.h"
#include "measured.h"
#include "moment.h"
#include "place.h"
#include "pool_users.h"
#include "settle.h"

/* What one allocation takes of its pool is a multiple of this; none is as large as the other. */
#define UNIT     512ULL
#define TOO_MUCH (1ULL << 48)

static bool has_room(struct pool *pool, uint64_t bytes) {
    return bytes < TOO_MUCH &&
           pools_use_more(pool, round_up(bytes, UNIT)) <= __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED);
}

/* What the pool lacks for so many bytes, at least: what is charged for it is room, whether it is reserved still or
 * again; but where that is not enough, what it has given back may be taken off it before more is charged, and is none.
 * Not all frees are counted, so what is in use by our sums is too much one day: then the driver is asked. */
static uint64_t lacking(struct pool *pool, uint64_t bytes) {
    if (bytes >= TOO_MUCH) return TOO_MUCH;
    uint64_t charged = __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED);
    uint64_t needed = pools_used(pool) + round_up(bytes, UNIT);
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

static void claim_growth(struct growth *growth, uint64_t bytes, uint64_t lack) {
    growth->span = charge_enter();
    growth->is_claimed = claim(growth, bytes, lack);
    growth->is_refused = !growth->is_claimed;
    if (growth->is_refused) charge_leave(growth->span);
}

/* From here to its end no pool is destroyed. False where this one was. */
static bool hold(struct growth *growth) {
    if (!growth->is_held) pool_users_enter();
    growth->is_held = true;
    return pools_known(growth->handle) == growth->pool;
}

static void make_room(struct growth *growth, uint64_t bytes, bool (*is_captured)(CUstream), CUstream stream) {
    if (!hold(growth)) return;
    if (exported_any()) growth_look(growth->pool); /* what it has given back is not seen any more once it has grown */
    uint64_t lack = lacking(growth->pool, bytes);
    if (lack != 0 && !is_captured(stream)) claim_growth(growth, bytes, lack);
}

static void begin(struct growth *growth, uint64_t bytes, bool (*is_captured)(CUstream), CUstream stream) {
    struct pool *pool = growth->pool;
    growth->span = -1;
    if (!pool || !pool->is_counted) return;
    growth->handle = __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE);
    if (!has_room(pool, bytes) || exported_any()) make_room(growth, bytes, is_captured, stream);
}

struct growth growth_begin(const char *what, struct pool *pool, uint64_t bytes, bool (*is_captured)(CUstream),
                           CUstream stream) {
    struct growth growth = {.what = what, .pool = pool};
    begin(&growth, bytes, is_captured, stream);
    return growth;
}

/* One that the program has chosen is not destroyed before the driver has allocated from it: who destroys it asks first
 * what is in use. */
struct growth growth_begin_current(const char *what, uint64_t bytes, bool (*is_captured)(CUstream), CUstream stream) {
    struct growth growth = {.what = what, .pool = pools_default_known()};
    if (!growth.pool) pool_users_enter();
    growth.is_held = !growth.pool;
    if (growth.is_held) growth.pool = pools_current();
    begin(&growth, bytes, is_captured, stream);
    return growth;
}

void growth_end(struct growth *growth) {
    if (growth->is_held) pool_users_leave();
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

/* A pool grows by asking the kernel for memory, which takes 25 us at the least; without that an allocation takes 0.5
 * us, and to ask what is reserved a tenth of it up to a third (measured on an H200, driver 580). So between two of a
 * thread's that are 8192 ticks apart, which are 2 to 8 us, the later one has not grown anything. */
static bool is_just_after_another(void) {
    static __thread uint64_t last;
    uint64_t before = last;
    last = moment_ticks();
    return last - before < moment_ticks_between_looks() >> 16;
}

static bool is_over(const struct pool *pool, uint64_t before) {
    const struct region *region = place_region();
    return __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED) > before &&
           account_used(region, pool->card) > charge_limit(pool->uuid);
}

static bool fits(struct pool *pool, const struct claim *claim, unsigned own) {
    uint64_t before = __atomic_load_n(&pool->reserved, __ATOMIC_RELAXED);
    settle(pool, claim, own);
    return !is_over(pool, before);
}

static CUmemoryPool ask_whose(CUdeviceptr pointer) {
    CUmemoryPool handle = NULL;
    REAL(cuPointerGetAttribute)((void *)&handle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer);
    return handle;
}

static CUmemoryPool whose(CUdeviceptr pointer) {
    if (!capture_was_seen()) return ask_whose(pointer);
    CUmemoryPool handle = NULL;
    CAPTURE_ALLOWS(handle = ask_whose(pointer));
    return handle;
}

/* Which pool is current may have changed meanwhile. What is none's is a graph's; and if the pool has been destroyed,
 * only NVML can say. */
static bool fits_where_it_lies(struct growth *growth, CUdeviceptr pointer) {
    hold(growth);
    CUmemoryPool handle = whose(pointer);
    struct pool *pool = handle ? pools_known(handle) : NULL;
    if (handle && !pool) measured_end();
    if (!pool || !pool->is_counted || (growth->is_claimed && pool == growth->pool) || !is_changed(pool)) return true;
    growth->pool = pool;
    return fits(pool, &(struct claim){0}, growth->is_claimed);
}

bool growth_fits(struct growth *growth, CUresult result, CUdeviceptr pointer) {
    bool is_looked_at = growth->handle && !is_just_after_another() && result == CUDA_SUCCESS;
    bool is_fitting = !growth->is_claimed || fits(growth->pool, &growth->claim, 1);
    if (growth->is_claimed || is_looked_at) is_fitting &= result != CUDA_SUCCESS || fits_where_it_lies(growth, pointer);
    charge_leave(growth->span);
    return is_fitting || result != CUDA_SUCCESS;
}

void growth_look(struct pool *pool) {
    if (pool && pool->is_counted && is_changed(pool)) settle(pool, &(struct claim){0}, 0);
}

/* Under the pools' lock. Whether all could be charged what they have reserved. */
static bool charge_all(int card, bool (*may_have_changed)(const struct pool *)) {
    struct pool *pool;
    bool all = true;
    for (unsigned at = 0; (pool = pools_next(card, &at));) {
        if (may_have_changed(pool)) pools_see_one(pool);
        if (is_due(pool, pool->seen)) all &= charge(pool, 0, false);
    }
    return all;
}

static bool look_on(int card, bool (*may_have_changed)(const struct pool *)) {
    pools_lock();
    bool charged = charge_all(card, may_have_changed);
    pools_unlock();
    return charged;
}

static bool any(const struct pool *pool) {
    (void)pool;
    return true;
}

void growth_look_on(const uint8_t uuid[UUID_SIZE], unsigned own) {
    const struct region *region = place_region();
    if (region && pools_any() && !look_on(account_find_card(region, uuid), any)) settle_own(uuid, own);
}

void growth_show_on(const uint8_t uuid[UUID_SIZE], int card) {
    if (!pools_any_may_have_shrunk(card) && !exported_any()) return;
    if (!look_on(card, pools_may_have_shrunk)) settle_own(uuid, 0);
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
