#include "order.h"

enum class order_class(const struct tenant *tenant, bool has_room) {
    if (tenant->ask.policy == POLICY_BEST_EFFORT) return has_room ? CLASS_LENT : CLASS_NONE;
    if (tenant->ask.guarantee > 0 && tenant->due > 0) return CLASS_WITHIN;
    return tenant->ask.policy == POLICY_BURST ? CLASS_BEYOND : CLASS_OVER;
}

/* Below 0: one goes first. */
static int compare_ranks(const struct tenant *one, const struct tenant *other, bool has_room) {
    enum class first = order_class(one, has_room), second = order_class(other, has_room);
    if (first != second) return first < second ? -1 : 1;
    if (one->ask.priority == other->ask.priority) return 0;
    return one->ask.priority > other->ask.priority ? -1 : 1;
}

bool order_outranks(const struct tenant *one, const struct tenant *other, bool has_room) {
    return compare_ranks(one, other, has_room) < 0;
}

bool order_is_before(const struct tenant *one, const struct tenant *other, bool has_room) {
    int ranks = compare_ranks(one, other, has_room);
    if (ranks != 0) return ranks < 0;
    if (tenant_is_hasty(one) != tenant_is_hasty(other) && order_class(one, has_room) == CLASS_WITHIN)
        return tenant_is_hasty(one);
    if (one->pace != other->pace) return one->pace < other->pace;
    return one->waits_since < other->waits_since;
}
