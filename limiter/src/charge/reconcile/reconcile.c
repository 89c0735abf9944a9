#include "charge/reconcile/reconcile.h"

#include "books/graphs/graph_charges.h"
#include "books/physical/physical_memory.h"
#include "books/pools/pools.h"
#include "charge/nvml/nvml_usage.h"
#include "charge/reconcile/cadence.h"
#include "charge/reconcile/lost_pool_memory.h"
#include "charge/release/release.h"
#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/system_calls.h"
#include "container/container.h"
#include "process/lock.h"
#include "region/account.h"

/* Tries of a measurement that other threads' calls spoil, and the pause between them. */
enum { TRIES = 5, PAUSE_NS = 50000 };

/* Bounds all tries together (40 ms), because a program waits for them: an NVML query is slow while the driver cleans up
 * a dead process. */
static const uint64_t TRIES_NS = 40000000;

/* NVML's figures of a card, and the state before they were read that decides whether they may be applied. */
struct nvml_snapshot {
    struct region *region;
    int card;                     /* row in the region */
    int slots;                    /* entries of `calls` */
    int own_slot;                 /* this process's; -1: none */
    unsigned own_calls;           /* calls that the calling thread has open */
    uint64_t pool_bytes;          /* what this process's pools had reserved */
    uint64_t device_bytes;        /* physical memory and memory of graphs of this process */
    uint64_t calls[REGION_SLOTS]; /* call counters of each slot (account_calls) */
    struct nvml_usage usage;      /* read last */
};

static bool read_pools(struct nvml_snapshot *snapshot) {
    HOLD_LOCK(LOCK_POOLS);
    return pools_read_card(snapshot->card, &snapshot->pool_bytes);
}

static bool take_snapshot(struct nvml_snapshot *snapshot, const uint8_t uuid[UUID_SIZE], unsigned own_calls) {
    snapshot->region = container_region();
    snapshot->card = snapshot->region ? account_find_card(snapshot->region, uuid) : -1;
    if (snapshot->card < 0 || !nvml_usage_is_trusted()) return false;
    snapshot->own_calls = own_calls;
    snapshot->own_slot = container_slot(snapshot->region);
    snapshot->slots = account_slots(snapshot->region);
    for (int slot = 0; slot < snapshot->slots; slot++) snapshot->calls[slot] = account_calls(snapshot->region, slot);
    snapshot->device_bytes = physical_memory_shown_bytes(snapshot->card) + graph_charges_on(snapshot->card);
    return read_pools(snapshot) && nvml_usage_read(uuid, &snapshot->usage);
}

/* NVML does not list a process without a context, although its pools, its physical memory and the memory of its graphs
 * are still on the card, for they belong to the device (measured on an H200, driver 580). The caller holds LOCK_REGION
 * and LOCK_POOLS. */
static bool reconcile_own_slot(const struct nvml_snapshot *snapshot, uint64_t nvml_bytes) {
    uint64_t bytes = nvml_bytes ? nvml_bytes : saturating_add(snapshot->pool_bytes, snapshot->device_bytes);
    int slot = snapshot->own_slot;
    return (nvml_bytes ? account_reconcile : account_reconcile_unlisted)(snapshot->region, slot, snapshot->card, bytes,
                                                                         snapshot->calls[slot], snapshot->own_calls);
}

/* Another process for which NVML reports nothing keeps its charge: it may have no context, or be checkpointed from
 * outside the container. If it has ended, its slot is cleared. The caller holds LOCK_REGION, and LOCK_POOLS for this
 * process's own slot. */
static bool reconcile_slot(const struct nvml_snapshot *snapshot, int slot) {
    uint64_t bytes;
    if (!nvml_usage_of_process(&snapshot->usage, snapshot->region->slots[slot].pid, &bytes)) return false;
    if (slot == snapshot->own_slot) return reconcile_own_slot(snapshot, bytes);
    if (bytes == 0) return true;
    return account_reconcile_other(snapshot->region, slot, snapshot->card, bytes, snapshot->calls[slot]);
}

/* If a pool has changed since the snapshot, at another thread's synchronisation, it is unknown whether NVML's figure
 * was read before or after that. The caller holds LOCK_POOLS and LOCK_REGION. */
static bool reconcile_self(const struct nvml_snapshot *snapshot, bool are_pools_unchanged) {
    if (snapshot->own_slot < 0 || !are_pools_unchanged) return false;
    release_apply_deferred(snapshot->region, snapshot->own_slot);
    lost_pool_memory_charge_card(snapshot->region, snapshot->card);
    if (!reconcile_slot(snapshot, snapshot->own_slot)) return false;
    pools_mark_charged(snapshot->card, account_corrections(snapshot->region, snapshot->own_slot, snapshot->card));
    return true;
}

/* NVML's list names processes of this pid namespace only. */
static bool is_visible(const struct nvml_snapshot *snapshot, int slot, const struct identity *self) {
    const struct region_slot *other = &snapshot->region->slots[slot];
    bool is_neighbour = other->namespace == self->namespace && self->namespace != 0;
    return slot != snapshot->own_slot && other->pid != 0 && is_neighbour;
}

/* Returns whether all visible processes could be reconciled. The caller holds LOCK_REGION. */
static bool reconcile_other_slots(const struct nvml_snapshot *snapshot) {
    struct identity self = container_self();
    bool is_done = true;
    for (int slot = 0; slot < snapshot->slots; slot++)
        if (is_visible(snapshot, slot, &self)) is_done &= reconcile_slot(snapshot, slot);
    return is_done;
}

/* Orphaned memory is charged to the card until all its importers are measured, so then the others are measured too. */
static bool apply_snapshot(const struct nvml_snapshot *snapshot, bool with_others) {
    uint64_t pool_bytes;
    HOLD_LOCK(LOCK_POOLS);
    bool are_pools_unchanged = pools_read_card(snapshot->card, &pool_bytes) && pool_bytes == snapshot->pool_bytes;
    HELD_REGION struct region *locked = region_hold(snapshot->region, REGION_LOCK_MS);
    if (!locked) return false;
    bool is_done = reconcile_self(snapshot, are_pools_unchanged);
    if (with_others || account_has_orphaned_memory(locked, snapshot->card)) reconcile_other_slots(snapshot);
    return is_done;
}

static bool try_reconcile(const uint8_t uuid[UUID_SIZE], unsigned own_calls, bool with_others) {
    struct nvml_snapshot snapshot;
    if (!take_snapshot(&snapshot, uuid, own_calls)) return false;
    bool is_done = apply_snapshot(&snapshot, with_others);
    nvml_usage_free(&snapshot.usage);
    return is_done;
}

static bool reconcile_with_retries(const uint8_t uuid[UUID_SIZE], unsigned own_calls, bool with_others) {
    if (!nvml_usage_is_trusted()) return false;
    uint64_t deadline = clock_now() + TRIES_NS;
    for (int tries = 1; !try_reconcile(uuid, own_calls, with_others); tries++) {
        if (tries == TRIES || clock_now() > deadline) return false;
        system_sleep(PAUSE_NS);
    }
    return true;
}

static bool apply_to_others(const struct nvml_snapshot *snapshot) {
    HELD_REGION struct region *locked = region_hold(snapshot->region, REGION_LOCK_MS);
    return locked && reconcile_other_slots(snapshot);
}

enum others_result { OTHERS_DONE, OTHERS_BUSY, OTHERS_UNKNOWN };

static enum others_result try_reconcile_others(const uint8_t uuid[UUID_SIZE]) {
    struct nvml_snapshot snapshot;
    if (!take_snapshot(&snapshot, uuid, 0)) return OTHERS_UNKNOWN;
    bool is_done = apply_to_others(&snapshot);
    nvml_usage_free(&snapshot.usage);
    return is_done ? OTHERS_DONE : OTHERS_BUSY;
}

/* If no snapshot can be taken, another try would not help. */
static bool reconcile_others_on(const uint8_t uuid[UUID_SIZE]) {
    enum others_result result = OTHERS_BUSY;
    for (int tries = 0; tries < TRIES && result == OTHERS_BUSY; tries++) {
        if (tries > 0) system_sleep(PAUSE_NS);
        result = try_reconcile_others(uuid);
    }
    return result == OTHERS_DONE;
}

bool reconcile_others(void) {
    const struct region *region = container_region();
    bool are_all_done = region != NULL;
    for (int card = 0; region && card < REGION_CARDS; card++)
        if (account_has_card(region, card)) are_all_done &= reconcile_others_on(region->cards[card].uuid);
    return are_all_done;
}

bool reconcile_own(const uint8_t uuid[UUID_SIZE], unsigned own_calls) {
    return reconcile_with_retries(uuid, own_calls, false);
}

bool reconcile_once(const uint8_t uuid[UUID_SIZE], unsigned own_calls) {
    return nvml_usage_is_trusted() && try_reconcile(uuid, own_calls, false);
}

bool reconcile_all(const uint8_t uuid[UUID_SIZE], unsigned own_calls) {
    return reconcile_with_retries(uuid, own_calls, true);
}

bool reconcile_every_card(unsigned own_calls) {
    const struct region *region = container_region();
    bool are_all_done = region != NULL;
    for (int card = 0; region && card < REGION_CARDS; card++)
        if (account_has_card(region, card))
            are_all_done &= reconcile_with_retries(region->cards[card].uuid, own_calls, true);
    return are_all_done;
}

static struct cadence cadences[REGION_CARDS]; /* by the region's row */

/* Pauses of about 10 to 100 ms, like the reaping interval: the view need not be more current than that. 200 times the
 * duration bounds measurements to 0.5 % of the time. */
static struct cadence_limits intervals(void) {
    uint64_t max_pause = clock_ticks_quarter_second() / 2;
    return (struct cadence_limits){.min_pause = max_pause / 8, .max_pause = max_pause, .pause_per_duration = 200};
}

bool reconcile_if_due(const uint8_t uuid[UUID_SIZE], unsigned own_calls, bool with_others) {
    const struct region *region = nvml_usage_is_trusted() ? container_region() : NULL;
    int card = region ? account_find_card(region, uuid) : -1;
    if (card < 0) return false;
    uint64_t started = clock_ticks();
    if (!cadence_take(&cadences[card], intervals(), started)) return false;
    uint32_t before = account_corrections(region, container_slot(region), card);
    bool is_done = try_reconcile(uuid, own_calls, with_others);
    bool has_changed = account_corrections(region, container_slot(region), card) != before;
    cadence_record(&cadences[card], intervals(), started, clock_ticks(), !is_done || has_changed);
    return is_done;
}

void reconcile_soon(void) {
    const struct region *region = container_region();
    for (int card = 0; region && card < REGION_CARDS && account_has_card(region, card); card++)
        cadence_hasten(&cadences[card]);
}
