#include "region/account.h"

#include <string.h>

#include "common/arithmetic.h"
#include "region/pool_exports.h"

enum { NO_CARD = -1, EVERY_CARD = REGION_CARDS };

static bool is_slot(int slot) { return slot >= 0 && slot < REGION_SLOTS; }

static bool is_card(int card) { return card >= 0 && card < REGION_CARDS; }

int account_slots(const struct region *region) {
    uint32_t high = region->header.slots_high;
    return high > REGION_SLOTS ? REGION_SLOTS : (int)high;
}

int account_find_card(const struct region *region, const uint8_t uuid[UUID_SIZE]) {
    for (int card = 0; card < REGION_CARDS; card++) {
        const struct region_card *row = &region->cards[card];
        if (__atomic_load_n(&row->taken, __ATOMIC_ACQUIRE) && memcmp(row->uuid, uuid, UUID_SIZE) == 0) return card;
    }
    return -1;
}

static int free_card(const struct region *region) {
    for (int card = 0; card < REGION_CARDS; card++)
        if (!region->cards[card].taken) return card;
    return -1;
}

int account_card(struct region *region, const uint8_t uuid[UUID_SIZE]) {
    int card = account_find_card(region, uuid);
    if (card >= 0) return card;
    card = free_card(region);
    if (card < 0) return -1;
    memcpy(region->cards[card].uuid, uuid, UUID_SIZE);
    __atomic_store_n(&region->cards[card].taken, 1, __ATOMIC_RELEASE);
    return card;
}

bool account_owns(const struct region *region, int slot, const struct identity *who) {
    if (slot < 0 || slot >= REGION_SLOTS) return false;
    const struct region_slot *held = &region->slots[slot];
    return __atomic_load_n(&held->pid, __ATOMIC_ACQUIRE) == who->pid && held->start_time == who->start_time &&
           held->namespace == who->namespace;
}

int account_slot_of(const struct region *region, const struct identity *who) {
    for (int slot = 0; slot < account_slots(region); slot++)
        if (account_owns(region, slot, who)) return slot;
    return -1;
}

static int free_slot(const struct region *region) {
    for (int slot = 0; slot < REGION_SLOTS; slot++)
        if (region->slots[slot].pid == 0) return slot;
    return -1;
}

int account_claim(struct region *region, const struct identity *who) {
    int slot = account_slot_of(region, who);
    if (slot >= 0) return slot;
    slot = free_slot(region);
    if (slot < 0) return -1;
    struct region_slot *taken = &region->slots[slot];
    memset(taken->used, 0, sizeof taken->used);
    memset(taken->managed, 0, sizeof taken->managed);
    uint64_t calls = ((taken->calls >> 32) + 1) << 32; /* whoever measured the former owner is not to settle us */
    __atomic_store_n(&taken->calls, calls, __ATOMIC_RELAXED);
    taken->start_time = who->start_time;
    taken->namespace = who->namespace;
    if (slot >= account_slots(region)) region->header.slots_high = (uint32_t)slot + 1;
    __atomic_store_n(&taken->pid, who->pid, __ATOMIC_RELEASE);
    return slot;
}

/* Readers outside the lock must not see half of a number. */
static void set(uint64_t *field, uint64_t value) { /* NOLINT(readability-non-const-parameter) */
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static uint64_t less(uint64_t from, uint64_t bytes) { return from > bytes ? from - bytes : 0; }

/* The slot is written before the card's sum: should we die between the two, the slot is what counts. */
static void set_both(struct region *region, int slot, int card, uint64_t bytes, uint64_t orphaned) {
    struct region_card *row = &region->cards[card];
    uint64_t before = saturating_add(region->slots[slot].used[card], row->orphaned);
    set(&region->slots[slot].used[card], bytes);
    set(&row->orphaned, orphaned);
    set(&row->used, saturating_add(less(row->used, before), saturating_add(bytes, orphaned)));
    if (row->used > row->peak) set(&row->peak, row->used);
}

static void set_used(struct region *region, int slot, int card, uint64_t bytes) {
    set_both(region, slot, card, bytes, region->cards[card].orphaned);
}

void account_charge(struct region *region, int slot, int card, uint64_t bytes) {
    if (!is_slot(slot) || !is_card(card)) return;
    set_used(region, slot, card, saturating_add(region->slots[slot].used[card], bytes));
}

bool account_reserve(struct region *region, int slot, int card, uint64_t bytes, uint64_t limit) {
    if (!is_slot(slot) || !is_card(card)) return false;
    struct region_card *row = &region->cards[card];
    set(&row->limit, limit);
    if (bytes > less(limit, row->used)) return false;
    account_charge(region, slot, card, bytes);
    return true;
}

void account_release(struct region *region, int slot, int card, uint64_t bytes) {
    if (!is_slot(slot) || !is_card(card)) return;
    set_used(region, slot, card, less(region->slots[slot].used[card], bytes));
}

void account_mark_managed(struct region *region, int slot, int card, uint64_t bytes) {
    if (!is_slot(slot) || !is_card(card)) return;
    uint64_t *managed = &region->slots[slot].managed[card];
    set(managed, saturating_add(*managed, bytes));
}

void account_unmark_managed(struct region *region, int slot, int card, uint64_t bytes) {
    if (!is_slot(slot) || !is_card(card)) return;
    uint64_t *managed = &region->slots[slot].managed[card];
    set(managed, less(*managed, bytes));
}

void account_count_refusal(struct region *region, int card) {
    if (is_card(card)) __atomic_fetch_add(&region->cards[card].refusals, 1, __ATOMIC_RELAXED);
}

void account_count_spill(struct region *region, int card, uint64_t bytes) {
    if (!is_card(card)) return;
    set(&region->cards[card].spilled, saturating_add(region->cards[card].spilled, bytes));
    set(&region->cards[card].spills, saturating_add(region->cards[card].spills, 1));
}

/* One begun is one more in either half, and one ended is one less in the low half. */
static const uint64_t BEGUN = (1ULL << 32) + 1;

void account_begin_call(struct region *region, int slot) {
    if (is_slot(slot)) __atomic_fetch_add(&region->slots[slot].calls, BEGUN, __ATOMIC_SEQ_CST);
}

void account_end_call(struct region *region, int slot) {
    if (is_slot(slot)) __atomic_fetch_sub(&region->slots[slot].calls, 1, __ATOMIC_SEQ_CST);
}

uint64_t account_calls(const struct region *region, int slot) {
    return is_slot(slot) ? __atomic_load_n(&region->slots[slot].calls, __ATOMIC_SEQ_CST) : 0;
}

static bool can_reconcile(const struct region *region, int slot, int card, uint64_t calls, unsigned own) {
    return is_slot(slot) && is_card(card) && account_calls(region, slot) == calls && (uint32_t)calls == own;
}

static void settle(struct region *region, int slot, int card, uint64_t right) {
    if (right == region->slots[slot].used[card]) return;
    set_used(region, slot, card, right);
    __atomic_fetch_add(&region->slots[slot].corrections[card], 1, __ATOMIC_RELEASE);
}

bool account_reconcile(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls, unsigned own) {
    if (!can_reconcile(region, slot, card, calls, own)) return false;
    settle(region, slot, card, saturating_add(bytes, region->slots[slot].managed[card]));
    return true;
}

bool account_reconcile_other(struct region *region, int slot, int card, uint64_t bytes, uint64_t calls) {
    if (!can_reconcile(region, slot, card, calls, 0)) return false;
    uint64_t used = region->slots[slot].used[card];
    uint64_t right = saturating_add(bytes, region->slots[slot].managed[card]);
    if (right < used) right = min_u64(used, saturating_add(right, pool_exports_exported_bytes(region, slot, card)));
    settle(region, slot, card, right);
    return true;
}

bool account_add_pool_export(struct region *region, const struct region_pool_export *row, uint64_t claimed) {
    int slot = (int)row->slot, card = (int)row->card;
    if (!is_slot(slot) || !is_card(card) || !pool_exports_add(region, row)) return false;
    set_both(region, slot, card, less(region->slots[slot].used[card], claimed),
             pool_exports_orphaned_bytes(region, card));
    return true;
}

/* The rows end first: should we die before the rest, what they were of is charged twice, until the slot is cleared. */
static void end_shares(struct region *region, int slot, uint64_t pool, int card, uint64_t bytes) {
    bool any = pool_exports_end(region, slot, pool);
    for (int each = 0; each < REGION_CARDS; each++) {
        uint64_t orphaned = any ? pool_exports_orphaned_bytes(region, each) : region->cards[each].orphaned;
        uint64_t taken = card == EVERY_CARD || card == each ? bytes : 0;
        set_both(region, slot, each, less(region->slots[slot].used[each], taken), orphaned);
    }
}

void account_end_pool_exports(struct region *region, int slot, uint64_t pool, int card, uint64_t bytes) {
    if (is_slot(slot)) end_shares(region, slot, pool, is_card(card) ? card : NO_CARD, bytes);
}

void account_clear(struct region *region, int slot) {
    if (!is_slot(slot)) return;
    end_shares(region, slot, EVERY_POOL, EVERY_CARD, UINT64_MAX);
    __atomic_store_n(&region->slots[slot].pid, 0, __ATOMIC_RELEASE);
}

void account_recompute(struct region *region) {
    uint64_t sums[REGION_CARDS];
    for (int card = 0; card < REGION_CARDS; card++) {
        sums[card] = pool_exports_orphaned_bytes(region, card);
        set(&region->cards[card].orphaned, sums[card]);
    }
    for (int slot = 0; slot < account_slots(region); slot++) {
        if (region->slots[slot].pid == 0) continue;
        for (int card = 0; card < REGION_CARDS; card++)
            sums[card] = saturating_add(sums[card], region->slots[slot].used[card]);
    }
    for (int card = 0; card < REGION_CARDS; card++) set(&region->cards[card].used, sums[card]);
}

uint64_t account_used(const struct region *region, int card) {
    return is_card(card) ? __atomic_load_n(&region->cards[card].used, __ATOMIC_RELAXED) : 0;
}

bool account_used_by_process(const struct region *region, uint32_t pid, uint64_t namespace, int card, uint64_t *bytes) {
    for (int slot = 0; pid != 0 && slot < account_slots(region); slot++) {
        const struct region_slot *held = &region->slots[slot];
        if (__atomic_load_n(&held->pid, __ATOMIC_ACQUIRE) != pid || held->namespace != namespace) continue;
        *bytes = is_card(card) ? __atomic_load_n(&held->used[card], __ATOMIC_RELAXED) : 0;
        return true;
    }
    return false;
}

const uint32_t *account_corrections_field(const struct region *region, int slot, int card) {
    return is_slot(slot) && is_card(card) ? &region->slots[slot].corrections[card] : NULL;
}

uint32_t account_corrections(const struct region *region, int slot, int card) {
    const uint32_t *place = account_corrections_field(region, slot, card);
    return place ? __atomic_load_n(place, __ATOMIC_ACQUIRE) : 0;
}
