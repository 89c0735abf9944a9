#include "charge/reconcile.h"

#include <time.h>

#include "books/pools.h"
#include "charge/cadence.h"
#include "charge/lost_pool_memory.h"
#include "charge/nvml_usage.h"
#include "charge/release.h"
#include "common/clock.h"
#include "container/container.h"
#include "region/account.h"

/* How often a measurement is tried that other threads' calls spoil, and the pause between. */
enum { TRIES = 5, PAUSE_NS = 50000 };

/* While the driver clears a dead process away a measurement takes long, and a program waits for all of them. */
static const uint64_t TRIES_NS = 40000000;

/* One look: the calls of each slot, and what our pools had reserved, as they stood before NVML was asked. */
struct nvml_snapshot {
    struct region *region;
    int card;
    int slots;
    int own_slot;
    unsigned own;
    uint64_t pooled;
    uint64_t calls[REGION_SLOTS];
    struct nvml_usage usage;
};

static bool begin(struct nvml_snapshot *snapshot, const uint8_t uuid[UUID_SIZE], unsigned own) {
    snapshot->region = container_region();
    snapshot->card = snapshot->region ? account_find_card(snapshot->region, uuid) : -1;
    if (snapshot->card < 0 || !nvml_usage_is_trusted()) return false;
    snapshot->own = own;
    snapshot->own_slot = container_slot(snapshot->region);
    snapshot->slots = account_slots(snapshot->region);
    for (int slot = 0; slot < snapshot->slots; slot++) snapshot->calls[slot] = account_calls(snapshot->region, slot);
    pools_lock();
    bool known = pools_read_card(snapshot->card, &snapshot->pooled);
    pools_unlock();
    return known && nvml_usage_read(uuid, &snapshot->usage);
}

/* The functions down to the next line are called under the region's lock and the pools'. */

static bool set(const struct nvml_snapshot *snapshot, int slot) {
    uint64_t bytes, calls = snapshot->calls[slot];
    if (!nvml_usage_of_process(&snapshot->usage, snapshot->region->slots[slot].pid, &bytes)) return false;
    return slot == snapshot->own_slot
               ? account_reconcile(snapshot->region, slot, snapshot->card, bytes, calls, snapshot->own)
               : account_reconcile_other(snapshot->region, slot, snapshot->card, bytes, calls);
}

/* What our pools have given back meanwhile, at another thread's synchronisation, is or is not in the usage. */
static bool settle_self(const struct nvml_snapshot *snapshot, bool is_pooled_same) {
    if (snapshot->own_slot < 0 || !is_pooled_same) return false;
    release_apply_deferred(snapshot->region, snapshot->own_slot);
    lost_pool_memory_charge_card(snapshot->region, snapshot->card);
    if (!set(snapshot, snapshot->own_slot)) return false;
    pools_mark_charged(snapshot->card, account_corrections(snapshot->region, snapshot->own_slot, snapshot->card));
    return true;
}

/* Another's pid means something to us in our own pid namespace only. */
static bool is_seen(const struct nvml_snapshot *snapshot, int slot, const struct identity *self) {
    const struct region_slot *of = &snapshot->region->slots[slot];
    return slot != snapshot->own_slot && of->pid != 0 && of->namespace == self->namespace;
}

/* Whether all of them could be. */
static bool set_others(const struct nvml_snapshot *snapshot) {
    struct identity self = container_self();
    bool done = true;
    for (int slot = 0; slot < snapshot->slots; slot++)
        if (is_seen(snapshot, slot, &self)) done &= set(snapshot, slot);
    return done;
}

/* The functions from here on take it. */

static bool correct(const struct nvml_snapshot *snapshot, bool others) {
    uint64_t pooled;
    bool done = false;
    pools_lock();
    bool is_same = pools_read_card(snapshot->card, &pooled) && pooled == snapshot->pooled;
    if (region_lock(snapshot->region, REGION_LOCK_MS) == 0) {
        done = settle_self(snapshot, is_same);
        if (others) set_others(snapshot);
        region_unlock(snapshot->region);
    }
    pools_unlock();
    return done;
}

static bool settle(const uint8_t uuid[UUID_SIZE], unsigned own, bool others) {
    struct nvml_snapshot snapshot;
    if (!begin(&snapshot, uuid, own)) return false;
    bool done = correct(&snapshot, others);
    nvml_usage_free(&snapshot.usage);
    return done;
}

static bool insist(const uint8_t uuid[UUID_SIZE], unsigned own, bool others) {
    if (!nvml_usage_is_trusted()) return false;
    uint64_t until = clock_now() + TRIES_NS;
    for (int tries = 1; !settle(uuid, own, others); tries++) {
        if (tries == TRIES || clock_now() > until) return false;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

/* Where nothing can be measured there is nothing to try again for. */
static bool settle_others_on(const uint8_t uuid[UUID_SIZE]) {
    struct nvml_snapshot snapshot;
    if (!begin(&snapshot, uuid, 0)) return true;
    bool done = false;
    if (region_lock(snapshot.region, REGION_LOCK_MS) == 0) {
        done = set_others(&snapshot);
        region_unlock(snapshot.region);
    }
    nvml_usage_free(&snapshot.usage);
    return done;
}

void reconcile_others(void) {
    const struct region *region = container_region();
    for (int card = 0; region && card < REGION_CARDS; card++)
        for (int tries = 0; tries < TRIES && region->cards[card].taken; tries++) {
            if (settle_others_on(region->cards[card].uuid)) break;
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        }
}

bool reconcile_own(const uint8_t uuid[UUID_SIZE], unsigned own) { return insist(uuid, own, false); }

bool reconcile_once(const uint8_t uuid[UUID_SIZE], unsigned own) {
    return nvml_usage_is_trusted() && settle(uuid, own, false);
}

bool reconcile_all(const uint8_t uuid[UUID_SIZE], unsigned own) { return insist(uuid, own, true); }

void reconcile_every_card(unsigned own) {
    const struct region *region = container_region();
    for (int card = 0; region && card < REGION_CARDS; card++)
        if (region->cards[card].taken) insist(region->cards[card].uuid, own, true);
}

static struct cadence cadences[REGION_CARDS];

/* The view need not be nearer to all than it is to the dead (reaping.h): some 10 to 100 ms, and of the time 0.5 %. */
static struct cadence_limits terms(void) {
    uint64_t most = clock_ticks_quarter_second() / 2;
    return (struct cadence_limits){.least = most / 8, .most = most, .times = 200};
}

bool reconcile_if_due(const uint8_t uuid[UUID_SIZE], unsigned own, bool others) {
    const struct region *region = nvml_usage_is_trusted() ? container_region() : NULL;
    int card = region ? account_find_card(region, uuid) : -1;
    if (card < 0) return false;
    uint64_t begun = clock_ticks();
    if (!cadence_take(&cadences[card], terms(), begun)) return false;
    uint32_t before = account_corrections(region, container_slot(region), card);
    bool done = settle(uuid, own, others);
    bool has_changed = account_corrections(region, container_slot(region), card) != before;
    cadence_record(&cadences[card], terms(), begun, clock_ticks(), !done || has_changed);
    return done;
}

void reconcile_soon(void) {
    const struct region *region = container_region();
    for (int card = 0; region && card < REGION_CARDS && region->cards[card].taken; card++)
        cadence_hasten(&cadences[card]);
}
