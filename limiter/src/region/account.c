#include "region/account.h"

#include <string.h>

#include "common/arithmetic.h"
#include "region/memory_exports.h"
#include "region/pool_exports.h"

enum { NO_CARD = -1, EVERY_CARD = REGION_CARDS }; /* values of `card` in release_after_rows */

static bool is_valid_slot(int slot) { return slot >= 0 && slot < REGION_SLOTS; }

static bool is_valid_card(int card) { return card >= 0 && card < REGION_CARDS; }

int account_slots(const struct region *region) {
    uint32_t high = __atomic_load_n(&region->header.slots_high, __ATOMIC_RELAXED);
    return high > REGION_SLOTS ? REGION_SLOTS : (int)high;
}

static void set_slots_high(struct region *region, int high) {
    __atomic_store_n(&region->header.slots_high, (uint32_t)high, __ATOMIC_RELAXED);
}

bool account_has_card(const struct region *region, int card) {
    return __atomic_load_n(&region->cards[card].is_valid, __ATOMIC_ACQUIRE);
}

int account_find_card(const struct region *region, const uint8_t uuid[UUID_SIZE]) {
    for (int card = 0; card < REGION_CARDS; card++)
        if (account_has_card(region, card) && memcmp(region->cards[card].uuid, uuid, UUID_SIZE) == 0) return card;
    return -1;
}

static int free_card(const struct region *region) {
    for (int card = 0; card < REGION_CARDS; card++)
        if (!account_has_card(region, card)) return card;
    return -1;
}

int account_find_or_add_card(struct region *region, const uint8_t uuid[UUID_SIZE]) {
    int card = account_find_card(region, uuid);
    if (card >= 0) return card;
    card = free_card(region);
    if (card < 0) return -1;
    memcpy(region->cards[card].uuid, uuid, UUID_SIZE);
    __atomic_store_n(&region->cards[card].is_valid, 1, __ATOMIC_RELEASE);
    return card;
}

bool account_owns(const struct region *region, int slot, const struct identity *process) {
    if (slot < 0 || slot >= REGION_SLOTS) return false;
    const struct region_slot *row = &region->slots[slot];
    return __atomic_load_n(&row->pid, __ATOMIC_ACQUIRE) == process->pid && row->start_time == process->start_time &&
           row->namespace == process->namespace;
}

int account_slot_of(const struct region *region, const struct identity *process) {
    for (int slot = 0; slot < account_slots(region); slot++)
        if (account_owns(region, slot, process)) return slot;
    return -1;
}

static int free_slot(const struct region *region) {
    for (int slot = 0; slot < REGION_SLOTS; slot++)
        if (region->slots[slot].pid == 0) return slot;
    return -1;
}

int account_slot_to_claim(const struct region *region, const struct identity *process) {
    int slot = account_slot_of(region, process);
    return slot >= 0 ? slot : free_slot(region);
}

void account_note_lock(struct region *region, int slot, bool is_locked) {
    if (is_valid_slot(slot)) __atomic_store_n(&region->slots[slot].is_locked, is_locked, __ATOMIC_RELAXED);
}

bool account_has_lock(const struct region *region, int slot) {
    return is_valid_slot(slot) && __atomic_load_n(&region->slots[slot].is_locked, __ATOMIC_RELAXED) == 1;
}

void account_note_image(struct region *region, int slot, uint32_t image) {
    if (is_valid_slot(slot)) region->slots[slot].image = image;
}

uint32_t account_image(const struct region *region, int slot) {
    return is_valid_slot(slot) ? region->slots[slot].image : 0;
}

int account_claim_slot(struct region *region, const struct identity *process) {
    int slot = account_slot_to_claim(region, process);
    if (!is_valid_slot(slot)) return -1;
    if (account_owns(region, slot, process)) return slot;
    struct region_slot *row = &region->slots[slot];
    memset(row->used, 0, sizeof row->used);
    memset(row->managed, 0, sizeof row->managed);
    /* A new call count invalidates measurements of the slot's former owner that are still under way. */
    uint64_t calls = ((row->calls >> 32) + 1) << 32;
    __atomic_store_n(&row->calls, calls, __ATOMIC_RELAXED);
    __atomic_store_n(&row->is_frozen, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&row->is_outside_group, 0, __ATOMIC_RELAXED);
    row->linked = 0;
    row->start_time = process->start_time;
    row->namespace = process->namespace;
    if (slot >= account_slots(region)) set_slots_high(region, slot + 1);
    __atomic_store_n(&row->pid, process->pid, __ATOMIC_RELEASE);
    return slot;
}

/* For fields that are also read without the lock: no reader must see half of a number. */
static void store(uint64_t *field, uint64_t value) { /* NOLINT(readability-non-const-parameter) */
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

/* Writes the slot before the card's sum: if this process dies in between, account_recompute builds the sum from the
 * slots. */
static void set_charges(struct region *region, int slot, int card, uint64_t bytes, uint64_t orphaned) {
    struct region_card *row = &region->cards[card];
    uint64_t before = saturating_add(region->slots[slot].used[card], row->orphaned);
    store(&region->slots[slot].used[card], bytes);
    store(&row->orphaned, orphaned);
    store(&row->used, saturating_add(saturating_sub(row->used, before), saturating_add(bytes, orphaned)));
    if (row->used > row->peak) store(&row->peak, row->used);
}

static void set_used(struct region *region, int slot, int card, uint64_t bytes) {
    set_charges(region, slot, card, bytes, region->cards[card].orphaned);
}

void account_replace(struct region *region, int slot, int card, uint64_t former, uint64_t bytes) {
    if (!is_valid_slot(slot) || !is_valid_card(card)) return;
    set_used(region, slot, card, saturating_add(saturating_sub(region->slots[slot].used[card], former), bytes));
}

void account_charge(struct region *region, int slot, int card, uint64_t bytes) {
    account_replace(region, slot, card, 0, bytes);
}

bool account_reserve(struct region *region, int slot, int card, uint64_t bytes, uint64_t limit) {
    if (!is_valid_slot(slot) || !is_valid_card(card)) return false;
    struct region_card *row = &region->cards[card];
    store(&row->limit, limit);
    if (bytes > saturating_sub(limit, row->used)) return false;
    account_charge(region, slot, card, bytes);
    return true;
}

void account_release(struct region *region, int slot, int card, uint64_t bytes) {
    account_replace(region, slot, card, bytes, 0);
}

void account_mark_managed(struct region *region, int slot, int card, uint64_t bytes) {
    if (!is_valid_slot(slot) || !is_valid_card(card)) return;
    uint64_t *managed = &region->slots[slot].managed[card];
    store(managed, saturating_add(*managed, bytes));
}

void account_unmark_managed(struct region *region, int slot, int card, uint64_t bytes) {
    if (!is_valid_slot(slot) || !is_valid_card(card)) return;
    uint64_t *managed = &region->slots[slot].managed[card];
    store(managed, saturating_sub(*managed, bytes));
}

void account_count_refusal(struct region *region, int card) {
    if (is_valid_card(card)) __atomic_fetch_add(&region->cards[card].refusals, 1, __ATOMIC_RELAXED);
}

void account_count_spill(struct region *region, int card, uint64_t bytes) {
    if (!is_valid_card(card)) return;
    store(&region->cards[card].spilled, saturating_add(region->cards[card].spilled, bytes));
    store(&region->cards[card].spills, saturating_add(region->cards[card].spills, 1));
}

/* The begin of a call increments both halves of region_slot.calls; its end decrements the low half. */
static const uint64_t ONE_CALL_BEGUN = (1ULL << 32) + 1;

void account_begin_call(struct region *region, int slot) {
    if (is_valid_slot(slot)) __atomic_fetch_add(&region->slots[slot].calls, ONE_CALL_BEGUN, __ATOMIC_SEQ_CST);
}

void account_end_call(struct region *region, int slot) {
    if (is_valid_slot(slot)) __atomic_fetch_sub(&region->slots[slot].calls, 1, __ATOMIC_SEQ_CST);
}

uint64_t account_calls(const struct region *region, int slot) {
    return is_valid_slot(slot) ? __atomic_load_n(&region->slots[slot].calls, __ATOMIC_SEQ_CST) : 0;
}

static uint64_t orphaned_bytes(const struct region *region, int card, int measured) {
    return saturating_add(pool_exports_orphaned_bytes(region, card),
                          memory_exports_orphaned_bytes(region, card, measured));
}

static bool is_frozen(const struct region *region, int slot) {
    return __atomic_load_n(&region->slots[slot].is_frozen, __ATOMIC_RELAXED) != 0;
}

static bool can_reconcile(const struct region *region, int slot, int card, uint64_t calls, unsigned own) {
    return is_valid_slot(slot) && is_valid_card(card) && !is_frozen(region, slot) &&
           account_calls(region, slot) == calls && (uint32_t)calls == own;
}

static void correct(struct region *region, int slot, int card, uint64_t bytes, uint64_t orphaned) {
    bool has_changed = bytes != region->slots[slot].used[card];
    if (!has_changed && orphaned == region->cards[card].orphaned) return;
    set_charges(region, slot, card, bytes, orphaned);
    if (has_changed) __atomic_fetch_add(&region->slots[slot].corrections[card], 1, __ATOMIC_RELEASE);
}

/* Orphaned memory that NVML counts for the process moves from the card's charge to the process's. The rows say so last:
 * if this process dies in between, the memory is charged twice until the next measurement, instead of not at all. */
static void correct_listed(struct region *region, int slot, int card, uint64_t bytes) {
    bool has_rows = memory_exports_any(region);
    correct(region, slot, card, bytes, has_rows ? orphaned_bytes(region, card, slot) : region->cards[card].orphaned);
    if (has_rows) memory_exports_measure(region, slot, card);
}

bool account_reconcile(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls, unsigned own) {
    if (!can_reconcile(region, slot, card, calls, own)) return false;
    correct_listed(region, slot, card, saturating_add(bytes, region->slots[slot].managed[card]));
    return true;
}

bool account_reconcile_unlisted(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls,
                                unsigned own) {
    if (!can_reconcile(region, slot, card, calls, own)) return false;
    uint64_t held = saturating_add(bytes, region->slots[slot].managed[card]);
    correct(region, slot, card, held, region->cards[card].orphaned);
    return true;
}

/* Exported bytes on a card that others may keep when NVML has ceased to count them for the process. */
static uint64_t exported_bytes(const struct region *region, int slot, int card) {
    return saturating_add(pool_exports_exported_bytes(region, slot, card),
                          memory_exports_shared_bytes(region, slot, card));
}

bool account_reconcile_other(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls) {
    if (!can_reconcile(region, slot, card, calls, 0)) return false;
    uint64_t used = region->slots[slot].used[card];
    uint64_t measured = saturating_add(bytes, region->slots[slot].managed[card]);
    if (measured < used) measured = min_u64(used, saturating_add(measured, exported_bytes(region, slot, card)));
    correct_listed(region, slot, card, measured);
    return true;
}

bool account_add_pool_export(struct region *region, const struct region_pool_export *row, uint64_t claimed) {
    int slot = (int)row->slot, card = (int)row->card;
    if (!is_valid_slot(slot) || !is_valid_card(card) || !pool_exports_add(region, row)) return false;
    set_charges(region, slot, card, saturating_sub(region->slots[slot].used[card], claimed),
                orphaned_bytes(region, card, NO_SLOT));
    return true;
}

bool account_add_memory_export(struct region *region, const struct region_memory_export *row) {
    int slot = (int)row->slot, card = (int)row->card;
    if (!is_valid_slot(slot) || !is_valid_card(card) || !memory_exports_add(region, row)) return false;
    if (!memory_exports_has_exporter(region, row->group))
        set_charges(region, slot, card, region->slots[slot].used[card], orphaned_bytes(region, card, NO_SLOT));
    return true;
}

/* Takes back a charge of `bytes` on a card, or on EVERY_CARD, after rows of exports have ended (`had_rows`). If this
 * process dies in between, the memory is charged twice until the slot is cleared, instead of not at all. */
static void release_after_rows(struct region *region, int slot, int card, uint64_t bytes, bool had_rows) {
    for (int row = 0; row < REGION_CARDS; row++) {
        bool is_due = had_rows && account_has_card(region, row);
        uint64_t orphaned = is_due ? orphaned_bytes(region, row, NO_SLOT) : region->cards[row].orphaned;
        uint64_t released = card == EVERY_CARD || card == row ? bytes : 0;
        set_charges(region, slot, row, saturating_sub(region->slots[slot].used[row], released), orphaned);
    }
}

void account_end_pool_exports(struct region *region, int slot, uint64_t pool, int card, uint64_t bytes) {
    if (!is_valid_slot(slot)) return;
    bool had_rows = pool_exports_end(region, slot, pool);
    release_after_rows(region, slot, is_valid_card(card) ? card : NO_CARD, bytes, had_rows);
}

void account_end_memory_export(struct region *region, int slot, uint64_t group, int card, uint64_t bytes) {
    if (!is_valid_slot(slot)) return;
    bool had_rows = memory_exports_end(region, slot, MEMORY_EXPORTER, group);
    release_after_rows(region, slot, is_valid_card(card) ? card : NO_CARD, bytes, had_rows);
}

void account_drop_memory_import(struct region *region, int slot, uint64_t group) {
    if (!is_valid_slot(slot)) return;
    bool has_ended = memory_exports_drop(region, slot, group);
    release_after_rows(region, slot, NO_CARD, 0, has_ended && !memory_exports_has_exporter(region, group));
}

bool account_has_orphaned_memory(const struct region *region, int card) {
    return is_valid_card(card) && memory_exports_orphaned_bytes(region, card, NO_SLOT) != 0;
}

/* Every process scans the slots at its start, so `slots_high` falls again when the last ones are free. */
static void lower_slots_high(struct region *region) {
    int high = account_slots(region);
    while (high > 0 && region->slots[high - 1].pid == 0) high--;
    set_slots_high(region, high);
}

void account_clear_slot(struct region *region, int slot) {
    if (!is_valid_slot(slot)) return;
    bool had_pools = pool_exports_end(region, slot, EVERY_POOL);
    bool had_memory = memory_exports_end(region, slot, EVERY_ROLE, EVERY_GROUP);
    release_after_rows(region, slot, EVERY_CARD, UINT64_MAX, had_pools || had_memory);
    __atomic_store_n(&region->slots[slot].pid, 0, __ATOMIC_RELEASE);
    account_note_lock(region, slot, false);
    lower_slots_high(region);
}

void account_recompute(struct region *region) {
    uint64_t sums[REGION_CARDS];
    for (int card = 0; card < REGION_CARDS; card++) {
        sums[card] = orphaned_bytes(region, card, NO_SLOT);
        store(&region->cards[card].orphaned, sums[card]);
    }
    for (int slot = 0; slot < account_slots(region); slot++) {
        if (region->slots[slot].pid == 0) continue;
        for (int card = 0; card < REGION_CARDS; card++)
            sums[card] = saturating_add(sums[card], region->slots[slot].used[card]);
    }
    for (int card = 0; card < REGION_CARDS; card++) store(&region->cards[card].used, sums[card]);
}

uint64_t account_used(const struct region *region, int card) {
    return is_valid_card(card) ? __atomic_load_n(&region->cards[card].used, __ATOMIC_RELAXED) : 0;
}

uint64_t account_used_by_slot(const struct region *region, int slot, int card) {
    bool is_valid = is_valid_slot(slot) && is_valid_card(card);
    return is_valid ? __atomic_load_n(&region->slots[slot].used[card], __ATOMIC_RELAXED) : 0;
}

static int slot_of_pid(const struct region *region, uint32_t pid, uint64_t namespace) {
    for (int slot = 0; pid != 0 && slot < account_slots(region); slot++) {
        const struct region_slot *row = &region->slots[slot];
        if (__atomic_load_n(&row->pid, __ATOMIC_ACQUIRE) == pid && row->namespace == namespace) return slot;
    }
    return -1;
}

bool account_freeze(struct region *region, uint32_t pid, uint64_t namespace, bool is_frozen) {
    int slot = slot_of_pid(region, pid, namespace);
    if (slot >= 0) __atomic_store_n(&region->slots[slot].is_frozen, is_frozen, __ATOMIC_SEQ_CST);
    return slot >= 0;
}

bool account_used_by_process(const struct region *region, uint32_t pid, uint64_t namespace, int card, uint64_t *bytes) {
    int slot = slot_of_pid(region, pid, namespace);
    if (slot < 0) return false;
    *bytes = account_used_by_slot(region, slot, card);
    return true;
}

const uint32_t *account_corrections_field(const struct region *region, int slot, int card) {
    return is_valid_slot(slot) && is_valid_card(card) ? &region->slots[slot].corrections[card] : NULL;
}

uint32_t account_corrections(const struct region *region, int slot, int card) {
    const uint32_t *field = account_corrections_field(region, slot, card);
    return field ? __atomic_load_n(field, __ATOMIC_ACQUIRE) : 0;
}
