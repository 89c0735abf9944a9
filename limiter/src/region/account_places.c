/* Whose row of the region is whose. */
#include <string.h>

#include "region/account.h"

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
