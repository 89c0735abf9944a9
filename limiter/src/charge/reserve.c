/* Charges ahead of the driver's call, and all that is done before one is refused. */
#include "charge/charge.h"
#include "charge/reaping.h"
#include "charge/reconcile.h"
#include "charge/refusals.h"
#include "container/container.h"
#include "hooks/graphs/graph_memory.h"
#include "hooks/memory/physical_charge.h"
#include "hooks/pools/pool_charge.h"
#include "region/account.h"

static uint64_t used(const struct region *region, const uint8_t uuid[UUID_SIZE]) {
    return account_used(region, account_find_card(region, uuid));
}

static bool try_reserve(struct region *region, const uint8_t uuid[UUID_SIZE], struct reservation *reservation,
                        uint64_t limit) {
    if (region_lock(region, CHARGE_LOCK_MS) != 0) return false;
    int slot = container_claim_slot(region);
    reservation->card = account_card(region, uuid);
    if (slot >= 0) charge_apply_deferred(region, slot);
    bool reserved = account_reserve(region, slot, reservation->card, reservation->bytes, limit);
    region_unlock(region);
    return reserved;
}

/* Looks at what is charged too much: our descriptors and pools, which can be looked at without NVML too, then all. */
static void correct(const uint8_t uuid[UUID_SIZE]) {
    physical_charge_sweep();
    pool_charge_check_card(uuid, 1);
    reconcile_all(uuid, 1);
}

void charge_trim_idle(const uint8_t uuid[UUID_SIZE]) {
    pool_charge_trim_card(uuid);
    graph_memory_correct(account_find_card(container_region(), uuid), true);
}

void charge_trim(const uint8_t uuid[UUID_SIZE]) {
    charge_trim_idle(uuid);
    correct(uuid);
}

/* Nothing is refused before the dead are taken off, what was charged too much is corrected, and what is kept without
 * use is given back. */
static bool reserve(struct region *region, const uint8_t uuid[UUID_SIZE], uint64_t limit,
                    struct reservation *reservation) {
    static void (*const ways[])(const uint8_t[UUID_SIZE]) = {correct, charge_trim};
    if (try_reserve(region, uuid, reservation, limit)) return true;
    reservation->reaped = reaping_now(region, 1) > 0;
    if (reservation->reaped && try_reserve(region, uuid, reservation, limit)) return true;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        uint64_t before = used(region, uuid);
        ways[way](uuid);
        if (used(region, uuid) < before && try_reserve(region, uuid, reservation, limit)) return true;
    }
    return false;
}

bool charge_try(const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct reservation *reservation) {
    struct region *region = container_region();
    *reservation = (struct reservation){.card = -1, .bytes = bytes};
    return region && try_reserve(region, uuid, reservation, charge_limit(uuid));
}

bool charge_reserve(const char *what, const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct reservation *reservation) {
    struct region *region = container_region();
    *reservation = (struct reservation){.card = -1, .bytes = bytes};
    if (region && reserve(region, uuid, charge_limit(uuid), reservation)) return true;
    refusals_report(what, uuid, bytes);
    return false;
}
