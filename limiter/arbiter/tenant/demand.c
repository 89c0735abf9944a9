#include "arbiter/tenant/demand.h"

#include "common/arithmetic.h"

/* A fixed policy without a share counts as burst: it may use what the other tenants leave. */
static enum compute_policy policy_of(const struct limits_slot *limits, bool has_share) {
    enum compute_policy policy = (enum compute_policy)limits->compute_policy;
    return policy == POLICY_FIXED && !has_share ? POLICY_BURST : policy;
}

bool demand_of(const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE], struct demand *out) {
    struct card_limit limit = limits_for_card(limits, uuid);
    bool has_share = limit.cores > 0 && limit.cores < FULL_CORES;
    out->policy = policy_of(limits, has_share);
    out->guarantee = has_share && out->policy != POLICY_BEST_EFFORT ? limit.cores : 0;
    out->weight = has_share ? limit.cores : 1;
    out->priority = limits->priority;
    out->is_group = false;
    return limit.memory > 0 || limit.cores > 0;
}

struct demand demand_of_empty_group(void) {
    return (struct demand){.policy = POLICY_BURST, .priority = UINT32_MAX, .is_group = true};
}

void demand_add_member(struct demand *group, const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE]) {
    uint32_t cores = limits_for_card(limits, uuid).cores;
    group->guarantee = (uint32_t)min_u64((uint64_t)group->guarantee + cores, FULL_CORES);
    group->weight += (uint32_t)max_u64(1, min_u64(cores, FULL_CORES));
    group->priority = (uint32_t)min_u64(group->priority, limits->priority);
}

/* A fixed share gets less than burst beyond its guarantee, and best-effort has none. */
static unsigned weakness(enum compute_policy policy) {
    static const unsigned ranks[POLICY_COUNT] = {[POLICY_BURST] = 0, [POLICY_FIXED] = 1, [POLICY_BEST_EFFORT] = 2};
    return ranks[policy];
}

void demand_lower(struct demand *demand, const struct demand *other) {
    if (weakness(other->policy) > weakness(demand->policy)) demand->policy = other->policy;
    demand->guarantee = (uint32_t)min_u64(demand->guarantee, other->guarantee);
    demand->weight = (uint32_t)min_u64(demand->weight, other->weight);
    demand->priority = (uint32_t)min_u64(demand->priority, other->priority);
    if (demand->policy == POLICY_BEST_EFFORT) demand->guarantee = 0;
}

bool demand_is_equal(const struct demand *first, const struct demand *second) {
    return first->policy == second->policy && first->guarantee == second->guarantee &&
           first->weight == second->weight && first->priority == second->priority &&
           first->is_group == second->is_group;
}
