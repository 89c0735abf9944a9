#include "ranking.h"

enum class ranking_class(const struct tenant *tenant, bool has_room) {
    if (tenant->demand.policy == POLICY_BEST_EFFORT) return has_room ? CLASS_BEST_EFFORT : CLASS_OVER_WATERMARK;
    if (tenant->demand.guarantee > 0 && tenant->due > 0) return CLASS_WITHIN_GUARANTEE;
    return tenant->demand.policy == POLICY_BURST ? CLASS_BURST : CLASS_OVER_FIXED_SHARE;
}

/* Below 0: one goes first. */
static int compare_ranks(const struct tenant *one, const struct tenant *other, bool has_room) {
    enum class first = ranking_class(one, has_room), second = ranking_class(other, has_room);
    if (first != second) return first < second ? -1 : 1;
    if (one->demand.priority == other->demand.priority) return 0;
    return one->demand.priority > other->demand.priority ? -1 : 1;
}

bool ranking_outranks(const struct tenant *one, const struct tenant *other, bool has_room) {
    return compare_ranks(one, other, has_room) < 0;
}

bool ranking_is_before(const struct tenant *one, const struct tenant *other, bool has_room) {
    int ranks = compare_ranks(one, other, has_room);
    if (ranks != 0) return ranks < 0;
    if (tenant_is_latency_sensitive(one) != tenant_is_latency_sensitive(other) &&
        ranking_class(one, has_room) == CLASS_WITHIN_GUARANTEE)
        return tenant_is_latency_sensitive(one);
    if (one->virtual_time != other->virtual_time) return one->virtual_time < other->virtual_time;
    return one->waits_since < other->waits_since;
}
