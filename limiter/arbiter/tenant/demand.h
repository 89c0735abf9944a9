/* What a container asks of a card, by its limits file. Pure. */
#ifndef VGPU_ARBITER_TENANT_DEMAND_H
#define VGPU_ARBITER_TENANT_DEMAND_H

#include "common/limits.h"

struct demand {
    enum compute_policy policy;
    uint32_t guarantee; /* percent of the card's time; 0 = none */
    uint32_t weight;    /* for the division of the remaining time; at least 1 */
    uint32_t priority;  /* higher goes first within a class (ranking.h) */
    bool is_group;      /* a group in space, whose clients hold its turns together; never changes */
};

/* Stores in `out` what the limits ask of the card; false if they do not name it: then nothing is guaranteed. */
bool demand_of(const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE], struct demand *out);

/* The demand of a group in space without members. */
struct demand demand_of_empty_group(void);

/* Adds what the limits of one more member ask of the card: guarantees up to the whole card. The group has the lowest
 * priority of its members, so that none goes before others by a neighbour's. */
void demand_add_member(struct demand *group, const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE]);

/* Lowers a demand to that of another one of the same job: the lowest share and priority and the weakest policy of all
 * count for each, because cards that have their turns together would have them by the strongest one's. */
void demand_lower(struct demand *demand, const struct demand *other);

bool demand_is_equal(const struct demand *first, const struct demand *second);

#endif
