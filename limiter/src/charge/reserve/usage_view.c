#include "charge/reserve/usage_view.h"

#include "charge/reconcile/reaping.h"
#include "charge/reconcile/reconcile.h"
#include "charge/reserve/memory_class.h"
#include "common/clock.h"
#include "container/container.h"
#include "region/account.h"

/* Whether to look at the intervals of reaping and reconciling, each of which reads the clock: at most once in about 1
 * ms, so that most views of a card read the clock once. */
static bool is_update_due(int card, uint64_t now) {
    static uint64_t due[REGION_CARDS];
    return clock_take_due_at(&due[card], clock_ticks_quarter_second() / 256, now);
}

/* Brings a card's usage up to date, and returns its row in the region; -1 if it has none. */
static int update_card(struct region *region, const uint8_t uuid[UUID_SIZE], uint64_t now) {
    int card = region ? account_find_card(region, uuid) : -1;
    if (card < 0) return card;
    bool is_due = is_update_due(card, now);
    bool is_after_reaping = is_due && reaping_if_due(region);
    for (const struct memory_class *const *class = memory_classes; *class; class++)
        if ((*class)->refresh) (*class)->refresh(uuid, card, is_after_reaping);
    if (is_due) reconcile_if_due(uuid, 0, true);
    return card;
}

struct usage_view usage_view_of_card(const uint8_t uuid[UUID_SIZE]) {
    struct region *region = container_region();
    uint64_t now = clock_ticks();
    struct usage_view view = {.limit = container_limit(uuid, now).memory};
    int card = view.limit != UNLIMITED ? update_card(region, uuid, now) : -1;
    if (card >= 0) view.used = account_used(region, card);
    return view;
}

bool usage_view_of_process(uint32_t pid, const uint8_t uuid[UUID_SIZE], uint64_t *bytes) {
    struct region *region = container_region();
    int card = update_card(region, uuid, clock_ticks());
    return region && account_used_by_process(region, pid, container_self().namespace, card, bytes);
}
