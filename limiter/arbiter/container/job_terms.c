#include "arbiter/container/job_terms.h"

/* A container has the same share of each of its cards. */
static bool read_demand(const struct container *container, struct demand *demand) {
    return container->limits.count > 0 && demand_of(&container->limits, container->limits.cards[0].uuid, demand);
}

/* Whether there are two members with demands at least. */
static bool find_lowest(struct job *job, struct demand *lowest) {
    unsigned count = 0;
    job->is_fixed = false;
    for (unsigned i = 0; i < job->members_count; i++) {
        struct demand demand;
        if (!read_demand(job->members[i].container, &demand)) continue;
        job->is_fixed |= demand.policy == POLICY_FIXED;
        if (count++ == 0) *lowest = demand;
        demand_lower(lowest, &demand);
    }
    return count > 1;
}

void job_terms_apply(struct job *job) {
    struct demand lowest = {0};
    bool is_bounded = find_lowest(job, &lowest);
    for (unsigned i = 0; i < job->members_count; i++) {
        job->members[i].container->is_bounded = is_bounded;
        job->members[i].container->bound = lowest;
    }
}
