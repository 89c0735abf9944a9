#include "region/linked_cards.h"

#include "common/share_tokens.h"

/* No wait is longer: the region's content is not trusted. */
#define WAIT_MAX (60000 * NS_PER_MS)

static uint32_t bit(unsigned card) { return card < REGION_CARDS ? UINT32_C(1) << card : 0; }

static uint32_t slots(const struct region *region) {
    uint32_t high = region->header.slots_high;
    return high < REGION_SLOTS ? high : REGION_SLOTS;
}

void linked_cards_join(struct region *region, int slot, uint32_t cards) {
    if (slot >= 0 && slot < REGION_SLOTS) region->slots[slot].linked |= cards;
}

void linked_cards_part(struct region *region, int slot) {
    if (slot >= 0 && slot < REGION_SLOTS) region->slots[slot].linked = 0;
}

static uint32_t with_neighbours(const struct region *region, uint32_t cards) {
    uint32_t all = cards;
    for (uint32_t slot = 0; slot < slots(region); slot++) {
        const struct region_slot *row = &region->slots[slot];
        if (row->pid != 0 && (row->linked & cards) != 0) all |= row->linked;
    }
    return all;
}

uint32_t linked_cards_of(const struct region *region, unsigned card) {
    uint32_t cards = bit(card), before;
    do {
        before = cards;
        cards = with_neighbours(region, cards);
    } while (cards != before);
    return cards != bit(card) ? cards : 0;
}

/* Numbers of windows wrap around. */
static bool is_newer(uint32_t window, uint32_t than) { return (int32_t)(window - than) > 0; }

static uint64_t time_to_repay(const struct linked_card *card) {
    uint64_t pending = card->is_open ? min_u64(card->used, WAIT_MAX) : 0;
    int64_t tokens = max_i64(card->tokens, -(int64_t)WAIT_MAX) - (int64_t)pending;
    return card->share ? share_tokens_time_to_repay(tokens, card->share) : 0;
}

uint64_t linked_cards_wait(const struct linked_card *own, const struct linked_card *others, unsigned count,
                           uint32_t *window) {
    uint64_t wait = time_to_repay(own);
    *window = own->window;
    for (unsigned i = 0; i < count; i++) {
        if (is_newer(others[i].window, *window)) *window = others[i].window;
        wait = max_u64(wait, time_to_repay(&others[i]));
    }
    if (*window != own->window) return 0;
    *window += 1;
    return min_u64(wait, WAIT_MAX);
}

enum linked_verdict linked_cards_judge(const struct linked_card *own, const struct linked_card *others, unsigned count,
                                       bool fits) {
    bool is_any_behind = false;
    uint32_t most = 0;
    for (unsigned i = 0; i < count; i++) {
        if (is_newer(others[i].window, own->window)) return LINKED_FULL;
        bool is_same = others[i].window == own->window;
        is_any_behind |= others[i].is_active && !(is_same && others[i].is_served);
        if (is_same && others[i].batches > most) most = others[i].batches;
    }
    if (fits) return LINKED_FITS;
    if (own->used >= LINKED_AHEAD_MAX) return LINKED_FULL;
    if (is_any_behind || (own->is_in_batch && count > 0)) return LINKED_FITS;
    return own->batches < most ? LINKED_CATCHES_UP : LINKED_FULL;
}

enum linked_verdict linked_cards_judge_last(const struct linked_card *own, const struct linked_card *others,
                                            unsigned count) {
    uint32_t most = 0;
    for (unsigned i = 0; i < count; i++) {
        if (is_newer(others[i].window, own->window)) return LINKED_FULL;
        if (others[i].window == own->window && others[i].batches > most) most = others[i].batches;
    }
    if (own->used >= LINKED_AHEAD_MAX) return LINKED_FULL;
    if (own->is_in_batch && count > 0) return LINKED_FITS;
    return own->batches < most ? LINKED_CATCHES_UP : LINKED_FULL;
}

void linked_cards_show_job(struct linked_card *own, struct linked_card *others, unsigned count, uint32_t job) {
    own->window = own->window == job;
    for (unsigned i = 0; i < count; i++) others[i].window = others[i].window == job;
}

bool linked_cards_may_owe(int64_t tokens, uint64_t for_others) {
    return tokens > -(int64_t)LINKED_AHEAD_MAX || for_others < LINKED_AHEAD_MAX;
}
