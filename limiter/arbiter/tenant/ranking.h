/* The order in which waiting tenants get turns: strict classes, then priority, then weighted fair queueing. Pure.
 * `is_best_effort_allowed` in all functions: best-effort tenants have time left below the watermark (watermark.h). */
#ifndef VGPU_ARBITER_TENANT_RANKING_H
#define VGPU_ARBITER_TENANT_RANKING_H

#include "arbiter/tenant/tenant.h"

/* A tenant gets a turn only if no tenant of an earlier class waits; the one exception is the starvation floor
 * (next_turn.h). */
enum class {
    CLASS_WITHIN_GUARANTEE, /* has credit left of its guarantee */
    CLASS_BURST,            /* a burst tenant beyond its guarantee */
    CLASS_OVER_FIXED_SHARE, /* a fixed share that has used its credit: has the card only where it would be idle */
    CLASS_BEST_EFFORT,      /* best effort, below the watermark */
    CLASS_OVER_WATERMARK,   /* best effort above the watermark: gets turns from the starvation floor only */
};

/* The class of a tenant, by its policy and its credit. */
enum class ranking_class(const struct tenant *tenant, bool is_best_effort_allowed);

/* Whether `tenant` has an earlier class than `other`, or a higher priority in the same class. */
bool ranking_outranks(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed);

/* Whether the first is to catch up with its guarantee before the second, of the same rank, gets more: it has credit and
 * is behind, and the second is ahead of its own. */
bool ranking_catches_up(const struct tenant *first, const struct tenant *second, bool is_best_effort_allowed);

/* Whether only virtual time decides between the two. */
bool ranking_is_equal(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed);

/* Whether `tenant` goes before `other`: by class and priority; within the guarantee, tenants that are overdue before
 * latency-sensitive ones, then tenants that are behind first, then latency-sensitive ones; then by less virtual time;
 * then by the longer wait. */
bool ranking_is_before(const struct tenant *tenant, const struct tenant *other, bool is_best_effort_allowed);

#endif
