#include "arbiter/tenant/ranking.h"

enum class ranking_class(const struct tenant *tenant, bool is_best_effort_allowed) {
    if (tenant->demand.policy == POLICY_BEST_EFFORT)
        return is_best_effort_allowed ? CLASS_BEST_EFFORT : CLASS_OVER_WATERMARK;
    if (tenant->demand.guarantee > 0 && tenant->credit_ns > 0) return CLASS_WITHIN_GUARANTEE;
    return tenant->demand.policy == POLICY_BURST ? CLASS_BURST : CLASS_OVER_FIXED_SHARE;
}

/* Below 0: `tenant` outranks `other`; 0: they have the same rank. */
static int compare_ranks(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed) {
    enum class first = ranking_class(tenant, is_best_effort_allowed),
               second = ranking_class(other, is_best_effort_allowed);
    if (first != second) return first < second ? -1 : 1;
    if (tenant->demand.priority == other->demand.priority) return 0;
    return tenant->demand.priority > other->demand.priority ? -1 : 1;
}

bool ranking_outranks(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed) {
    return compare_ranks(tenant, other, is_best_effort_allowed) < 0;
}

bool ranking_catches_up(const struct tenant *first, const struct tenant *second, bool is_best_effort_allowed) {
    return compare_ranks(first, second, is_best_effort_allowed) == 0 &&
           ranking_class(first, is_best_effort_allowed) == CLASS_WITHIN_GUARANTEE && tenant_is_behind(first) &&
           tenant_is_ahead(second);
}

/* Of two tenants of one rank. */
static bool differ_in_sensitivity(const struct tenant *tenant, const struct tenant *other,
                                  bool is_best_effort_allowed) {
    return tenant_is_latency_sensitive(tenant) != tenant_is_latency_sensitive(other) &&
           ranking_class(tenant, is_best_effort_allowed) == CLASS_WITHIN_GUARANTEE;
}

/* Of two tenants of one rank. Latency-sensitive ones that have the card by turns for all of the time would leave one
 * that is not of their kind nothing, though all are within their guarantees: handovers take what the sum of these
 * leaves. */
static bool overtakes(const struct tenant *overdue, const struct tenant *sensitive) {
    return tenant_is_overdue(overdue) && tenant_is_latency_sensitive(sensitive);
}

static bool overtakes_first(const struct tenant *tenant, const struct tenant *other) {
    return overtakes(tenant, other) && (!overtakes(other, tenant) || tenant->waiting_since < other->waiting_since);
}

bool ranking_is_equal(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed) {
    return compare_ranks(tenant, other, is_best_effort_allowed) == 0 && !overtakes(tenant, other) &&
           !overtakes(other, tenant) && !ranking_catches_up(tenant, other, is_best_effort_allowed) &&
           !ranking_catches_up(other, tenant, is_best_effort_allowed) &&
           !differ_in_sensitivity(tenant, other, is_best_effort_allowed);
}

bool ranking_is_before(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed) {
    int ranks = compare_ranks(tenant, other, is_best_effort_allowed);
    if (ranks != 0) return ranks < 0;
    if (overtakes(tenant, other) || overtakes(other, tenant)) return overtakes_first(tenant, other);
    if (ranking_catches_up(tenant, other, is_best_effort_allowed)) return true;
    if (ranking_catches_up(other, tenant, is_best_effort_allowed)) return false;
    if (differ_in_sensitivity(tenant, other, is_best_effort_allowed)) return tenant_is_latency_sensitive(tenant);
    if (tenant->virtual_time != other->virtual_time) return tenant->virtual_time < other->virtual_time;
    return tenant->waiting_since < other->waiting_since;
}
