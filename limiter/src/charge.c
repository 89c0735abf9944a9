/* The region's lock guards the region; it is never held across a call of the driver's. */
#include "charge.h"

#include <string.h>
#include <time.h>

#include "account.h"
#include "changes.h"
#include "graph_memory.h"
#include "growth.h"
#include "identity.h"
#include "place.h"
#include "refusals.h"
#include "settle.h"
#include "source.h"

/* How long the view may show what a dead process held; a reservation that would be refused looks at once. */
enum { REAP_EVERY_MS = 100 };

/* Releases that wait for the lock; of them, what is managed memory. Atomically. */
static uint64_t put_off[REGION_CARDS];
static uint64_t put_off_managed[REGION_CARDS];
static bool is_any_put_off;

void charge_forget(void) {
    memset(put_off, 0, sizeof put_off);
    memset(put_off_managed, 0, sizeof put_off_managed);
    is_any_put_off = false;
}

bool charge_is_limited(void) { return place_is_limited(); }

uint64_t charge_limit(const uint8_t uuid[UUID_SIZE]) { return place_limit(uuid).memory; }

/* Without a limit nothing would end it but the host's memory. */
bool charge_may_spill(const uint8_t uuid[UUID_SIZE]) {
    return place_memory_policy() == MEMORY_SPILL && charge_limit(uuid) != UNLIMITED;
}

/* Whether the last look for dead processes is long enough ago; the first who asks is the one to look. */
static bool is_reaping_due(void) {
    static uint64_t due_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    uint64_t due = __atomic_load_n(&due_ms, __ATOMIC_RELAXED);
    return now_ms >= due && __atomic_compare_exchange_n(&due_ms, &due, now_ms + REAP_EVERY_MS, false, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED);
}

/* What the dead had shared may live on with another process: it is charged there before it is taken back here. */
static unsigned reap(struct region *region, unsigned own) {
    struct identity who = place_self();
    if (!identity_any_dead(region, &who)) return 0;
    settle_every_card(own);
    return identity_reap(region, &who, CHARGE_LOCK_MS);
}

static uint64_t used(const struct region *region, const uint8_t uuid[UUID_SIZE]) {
    return account_used(region, account_find_card(region, uuid));
}

/* The region as the view shows it, or NULL. */
static struct region *region_to_view(const uint8_t uuid[UUID_SIZE]) {
    struct region *region = place_region();
    if (region && is_reaping_due()) {
        changes_look();
        reap(region, 0);
    }
    if (region) growth_look_on(uuid, 0);
    if (region) settle_if_due(uuid, 0, true);
    return region;
}

uint64_t charge_used(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = region_to_view(uuid);
    return region ? used(region, uuid) : 0;
}

bool charge_of_process(uint32_t pid, const uint8_t uuid[UUID_SIZE], uint64_t *bytes) {
    const struct region *region = region_to_view(uuid);
    int card = region ? account_find_card(region, uuid) : -1;
    return region && account_of_process(region, pid, place_self().namespace, card, bytes);
}

/* A process's first call takes its slot, so that the span has one to be marked on. */
static int own_slot(struct region *region) {
    int slot = place_slot(region);
    if (slot >= 0 || region_lock(region, CHARGE_LOCK_MS) != 0) return slot;
    slot = place_claim_slot(region);
    region_unlock(region);
    return slot;
}

void charge_join(const uint8_t uuid[UUID_SIZE]) {
    struct region *region = place_region();
    if (!region || (place_slot(region) >= 0 && account_find_card(region, uuid) >= 0)) return;
    if (region_lock(region, CHARGE_LOCK_MS) != 0) return;
    place_claim_slot(region);
    account_card(region, uuid);
    region_unlock(region);
}

int charge_enter(void) {
    struct region *region = place_region();
    if (!region) return -1;
    int slot = own_slot(region);
    account_enter(region, slot);
    return slot;
}

void charge_leave(int span) {
    if (span >= 0) account_leave(place_region(), span);
}

/* Under the region's lock. */
void charge_catch_up(struct region *region, int slot) {
    if (!__atomic_exchange_n(&is_any_put_off, false, __ATOMIC_SEQ_CST)) return;
    for (int card = 0; card < REGION_CARDS; card++) {
        if (__atomic_load_n(&put_off[card], __ATOMIC_RELAXED) == 0) continue;
        account_release(region, slot, card, __atomic_exchange_n(&put_off[card], 0, __ATOMIC_RELAXED));
        account_unmark_managed(region, slot, card, __atomic_exchange_n(&put_off_managed[card], 0, __ATOMIC_RELAXED));
    }
}

static bool try_reserve(struct region *region, const uint8_t uuid[UUID_SIZE], struct claim *claim, uint64_t limit) {
    if (region_lock(region, CHARGE_LOCK_MS) != 0) return false;
    int slot = place_claim_slot(region);
    claim->card = account_card(region, uuid);
    if (slot >= 0) charge_catch_up(region, slot);
    bool reserved = account_reserve(region, slot, claim->card, claim->bytes, limit);
    region_unlock(region);
    return reserved;
}

/* Looks at what is charged too much: our descriptors and pools, which can be looked at without NVML too, then all. */
static void correct(const uint8_t uuid[UUID_SIZE]) {
    changes_look();
    growth_look_on(uuid, 1);
    settle_all(uuid, 1);
}

static void trim(const uint8_t uuid[UUID_SIZE]) {
    growth_trim_on(uuid);
    graph_memory_trim_on(uuid, account_find_card(place_region(), uuid));
    correct(uuid);
}

/* Nothing is refused before the dead are taken off, what was charged too much is corrected, and what is kept without
 * use is given back. */
static bool reserve(struct region *region, const uint8_t uuid[UUID_SIZE], uint64_t limit, struct claim *claim) {
    static void (*const ways[])(const uint8_t[UUID_SIZE]) = {correct, trim};
    if (try_reserve(region, uuid, claim, limit)) return true;
    claim->reaped = reap(region, 1) > 0;
    if (claim->reaped && try_reserve(region, uuid, claim, limit)) return true;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        uint64_t before = used(region, uuid);
        ways[way](uuid);
        if (used(region, uuid) < before && try_reserve(region, uuid, claim, limit)) return true;
    }
    return false;
}

bool charge_try(const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct claim *claim) {
    struct region *region = place_region();
    *claim = (struct claim){.card = -1, .bytes = bytes};
    return region && try_reserve(region, uuid, claim, charge_limit(uuid));
}

bool charge_reserve(const char *what, const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct claim *claim) {
    struct region *region = place_region();
    *claim = (struct claim){.card = -1, .bytes = bytes};
    if (region && reserve(region, uuid, charge_limit(uuid), claim)) return true;
    refusals_add(what, uuid, bytes);
    return false;
}

void charge_spill(int card, uint64_t bytes) {
    struct region *region = place_region();
    if (!region || region_lock(region, CHARGE_LOCK_MS) != 0) return;
    account_spill(region, card, bytes);
    region_unlock(region);
}

void charge_mark_managed(int card, uint64_t bytes) {
    struct region *region = place_region();
    if (!region || region_lock(region, CHARGE_LOCK_MS) != 0) return; /* counted twice never, and rarely not at all */
    account_mark_managed(region, place_slot(region), card, bytes);
    region_unlock(region);
}

void charge_unmark_managed(int card, uint64_t bytes) {
    struct region *region = place_region();
    if (!region || region_lock(region, CHARGE_LOCK_MS) != 0) return;
    account_unmark_managed(region, place_slot(region), card, bytes);
    region_unlock(region);
}

static void release(int card, uint64_t bytes, uint64_t managed) {
    struct region *region = place_region();
    if (!region || card < 0 || card >= REGION_CARDS) return;
    __atomic_fetch_add(&put_off_managed[card], managed, __ATOMIC_RELAXED);
    __atomic_fetch_add(&put_off[card], bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&is_any_put_off, true, __ATOMIC_SEQ_CST);
    if (region_lock(region, CHARGE_LOCK_MS) != 0) return;
    int slot = place_slot(region);
    if (slot >= 0) charge_catch_up(region, slot);
    region_unlock(region);
}

void charge_release(int card, uint64_t bytes) { release(card, bytes, 0); }

void charge_release_managed(int card, uint64_t bytes) { release(card, bytes, bytes); }

uint64_t charge_context_size(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = place_region();
    int card = region ? account_find_card(region, uuid) : -1;
    return card >= 0 ? __atomic_load_n(&region->cards[card].context, __ATOMIC_RELAXED) : 0;
}

void charge_set_context_size(const uint8_t uuid[UUID_SIZE], uint64_t bytes) {
    struct region *region = place_region();
    if (!region || region_lock(region, CHARGE_LOCK_MS) != 0) return;
    int card = account_card(region, uuid);
    if (card >= 0) __atomic_store_n(&region->cards[card].context, bytes, __ATOMIC_RELAXED);
    region_unlock(region);
}

void charge_clear_former_image(void) {
    struct region *region = source_open_region();
    if (!region) return;
    if (region->header.slots_high != 0) {
        struct identity who = identity_self();
        int slot = account_slot_of(region, &who);
        if (slot >= 0 && region_lock(region, CHARGE_LOCK_MS) == 0) {
            account_clear(region, slot);
            region_unlock(region);
        }
    }
    region_close(region);
}
