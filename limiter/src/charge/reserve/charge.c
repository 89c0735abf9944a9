#include "charge/reserve/charge.h"

#include "charge/reconcile/reaping.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/memory_class.h"
#include "charge/reserve/refusals.h"
#include "container/container.h"
#include "region/account.h"

/* While it reserves, a thread has opened one call, for its own allocation (`own_calls` in reconcile.h). */
enum { OWN_CALL = 1 };

bool charge_may_spill(const uint8_t uuid[UUID_SIZE]) {
    return container_memory_policy() == MEMORY_SPILL && container_memory_limit(uuid) != UNLIMITED;
}

/* A process's first call claims the slot whose counters the call is noted in. */
static int get_or_claim_slot(struct region *region) {
    int slot = container_slot(region);
    if (slot >= 0) return slot;
    HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
    return locked ? container_claim_slot(locked) : slot;
}

int charge_begin_call(void) {
    struct region *region = container_region();
    if (!region) return -1;
    int slot = get_or_claim_slot(region);
    account_begin_call(region, slot);
    return slot;
}

void charge_end_call(int call_slot) {
    if (call_slot >= 0) account_end_call(container_region(), call_slot);
}

/* A count for metrics: dropped if the lock cannot be had. */
void charge_count_spill(int card, uint64_t bytes) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    if (region) account_count_spill(region, card, bytes);
}

void charge_unconditionally(int card, uint64_t bytes) { release_update(UPDATE_CHARGE, card, bytes); }

void charge_mark_managed(int card, uint64_t bytes) { release_update(UPDATE_MARK_MANAGED, card, bytes); }

void charge_unmark_managed(int card, uint64_t bytes) { release_update(UPDATE_UNMARK_MANAGED, card, bytes); }

static uint64_t used_on_card(const struct region *region, const uint8_t uuid[UUID_SIZE]) {
    return account_used(region, account_find_card(region, uuid));
}

static bool try_reserve(struct region *region, const uint8_t uuid[UUID_SIZE], struct reservation *reservation,
                        uint64_t limit) {
    HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
    if (!locked) return false;
    int slot = container_claim_slot(locked);
    reservation->card = account_find_or_add_card(locked, uuid);
    if (slot >= 0) release_apply_deferred(locked, slot);
    return account_reserve(locked, slot, reservation->card, reservation->bytes, limit);
}

/* The memory classes come first, because they correct charges without NVML too. */
static void correct_charges(const uint8_t uuid[UUID_SIZE]) {
    for (const struct memory_class *const *class = memory_classes; *class; class++)
        if ((*class)->correct) (*class)->correct(uuid, OWN_CALL);
    reconcile_all(uuid, OWN_CALL);
}

void charge_trim_idle(const uint8_t uuid[UUID_SIZE]) {
    for (const struct memory_class *const *class = memory_classes; *class; class++)
        if ((*class)->trim) (*class)->trim(uuid);
}

void charge_trim_and_correct(const uint8_t uuid[UUID_SIZE]) {
    charge_trim_idle(uuid);
    correct_charges(uuid);
}

/* From cheap to costly: each remedy is tried only if the ones before it did not make room. The limit may have been
 * raised since it was last looked at. */
static bool reserve_with_remedies(struct region *region, const uint8_t uuid[UUID_SIZE],
                                  struct reservation *reservation) {
    static void (*const remedies[])(const uint8_t[UUID_SIZE]) = {correct_charges, charge_trim_and_correct};
    uint64_t known = container_memory_limit(uuid);
    if (try_reserve(region, uuid, reservation, known)) return true;
    uint64_t limit = container_newest_memory_limit(uuid);
    if (limit > known && try_reserve(region, uuid, reservation, limit)) return true;
    reservation->has_reaped = reaping_now(region, OWN_CALL) > 0;
    if (reservation->has_reaped && try_reserve(region, uuid, reservation, limit)) return true;
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++) {
        uint64_t used_before = used_on_card(region, uuid);
        remedies[i](uuid);
        if (used_on_card(region, uuid) < used_before && try_reserve(region, uuid, reservation, limit)) return true;
    }
    return false;
}

uint64_t charge_of_process(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = container_region();
    return region ? account_used_by_slot(region, container_slot(region), account_find_card(region, uuid)) : 0;
}

uint64_t charge_of_container(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = container_region();
    return region ? used_on_card(region, uuid) : 0;
}

bool charge_try(const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct reservation *reservation) {
    struct region *region = container_region();
    *reservation = (struct reservation){.card = -1, .bytes = bytes};
    return region && try_reserve(region, uuid, reservation, container_memory_limit(uuid));
}

bool charge_reserve(const char *function_name, const uint8_t uuid[UUID_SIZE], uint64_t bytes,
                    struct reservation *reservation) {
    struct region *region = container_region();
    *reservation = (struct reservation){.card = -1, .bytes = bytes};
    if (region && reserve_with_remedies(region, uuid, reservation)) return true;
    refusals_report(function_name, uuid, bytes);
    return false;
}
