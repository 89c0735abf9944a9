/* Which tenant gets the next turn, and whether the current holder has to yield to it. Ranks tenants by ranking.h, with
 * a starvation floor. Part of the schedule (schedule_state.h). */
#ifndef VGPU_ARBITER_SCHEDULE_NEXT_TURN_H
#define VGPU_ARBITER_SCHEDULE_NEXT_TURN_H

#include "arbiter/schedule/schedule_state.h"

struct next_turn {
    int tenant;        /* SCHEDULE_NONE: no waiting tenant may have a turn now */
    bool is_floor;     /* chosen by the starvation floor instead of its rank */
    bool is_protected; /* it has starved or is overdue: the turn is short, and neither preempted nor put off */
};

/* Chooses among the waiting tenants, but for those of jobs (job_turn.h): one that has starved for 300 ms, at most once
 * in 300 ms; otherwise the best by rank, without best-effort tenants above the watermark. A fixed share that has used
 * its credit does not starve. */
struct next_turn next_turn_choose(struct schedule *schedule, uint64_t now);

/* Whether `tenant` may have the card as soon as the current holder: it is not a best-effort tenant after one of another
 * policy. There is a current turn. */
bool next_turn_has_claim(const struct schedule *schedule, int tenant);

/* The budget of the next turn of `tenant`, around the usual `budget`: burst tenants that take turns one after the other
 * are kept equal by longer and shorter turns, so that none has to wait for two turns of another in a row. */
uint64_t next_turn_budget(const struct schedule *schedule, int tenant, uint64_t budget);

/* Whether the holder has to yield now to the waiting tenant that is chosen: because that one preempts it, or because
 * the turn's time is used and the holder does not rank before it. There is a current turn. */
bool next_turn_is_due(struct schedule *schedule, uint64_t now);

/* Whether `tenant`, which may be a job's, would be given the card's next turn before every tenant that waits by itself,
 * and before the holder. */
bool next_turn_would_be(struct schedule *schedule, int tenant, uint64_t now);

/* Whether the holder, which is another tenant, would have to yield to `tenant` now. There is a current turn. */
bool next_turn_is_due_for(struct schedule *schedule, int tenant, uint64_t now);

/* Whether a turn of `tenant` needs no budget: every other waiting tenant ranks below it, no other client of its own
 * waits, and it is not a best-effort tenant that the watermark limits. */
bool next_turn_is_unbounded(const struct schedule *schedule, int tenant);

/* Whether a waiting tenant is latency-sensitive. */
bool next_turn_has_latency_sensitive_waiter(const struct schedule *schedule);

/* Whether another active tenant is latency-sensitive and could preempt `tenant`: then little work may be in flight. */
bool next_turn_has_latency_sensitive_rival(const struct schedule *schedule, int tenant, uint64_t now);

/* Whether `tenant` is best-effort beside an active tenant of another policy, which preempts it at any time. */
bool next_turn_is_preemptible(const struct schedule *schedule, int tenant, uint64_t now);

/* Whether the tenant `candidate` would preempt the tenant `holder` at once if it wanted a turn. */
bool next_turn_would_preempt(const struct schedule *schedule, int holder, int candidate);

#endif
