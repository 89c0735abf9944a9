/* A tenant: a container on one card. Keeps its credit of guaranteed time, its virtual time, and what was learnt about
 * the length and the times of its turns. Time counts as the tenant held the card by the arbiter's clock. Pure: the
 * clock is an argument. All times are in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_ARBITER_TENANT_TENANT_H
#define VGPU_ARBITER_TENANT_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "arbiter/predict/arrival_predictor.h"
#include "arbiter/predict/pause_predictor.h"
#include "arbiter/tenant/demand.h"
#include "arbiter/tenant/overrun_budget.h"
#include "arbiter/tenant/recent_time.h"
#include "arbiter/tenant/tenant_use.h"
#include "arbiter/tenant/turn_counts.h"
#include "common/arbitration.h"
#include "common/arithmetic.h"

/* The time of a handover: the card's change from one context to another (measured on an H200). */
#define TENANT_HANDOVER (NS_PER_MS / 5)

/* How much longer the card takes to change from a group in space: its MPS server has work of several clients on it
 * (measured on an H200 with three). */
#define TENANT_GROUP_HANDOVER (NS_PER_MS / 4)

/* A tenant that has neither wanted nor held the card for this long is inactive. */
#define TENANT_ACTIVE_NS (2000 * NS_PER_MS)

/* The longest kernel that a tenant may run to its end while others wait, if its guarantee pays for it. */
#define TENANT_LONG_KERNEL ARBITRATION_LONG_KERNEL_NS

/* The longest turn that counts as short. */
#define TENANT_SHORT_TURN (3 * NS_PER_MS)

/* The GPU time that the starvation floor guarantees in each TENANT_FLOOR_INTERVAL. */
#define TENANT_FLOOR_BUDGET   (3 * NS_PER_MS)
#define TENANT_FLOOR_INTERVAL (300 * NS_PER_MS)

/* Why a turn ended: it was used up, or its tenant had no work. */
enum turn_ending { TURN_ENDING_UNKNOWN, TURN_USED_UP, TURN_ENDED_IDLE };

struct tenant {
    bool is_taken;     /* the entry is in use */
    bool is_contended; /* what its clients' pages say */
    bool is_paced;     /* it needs turns although it may have the card to itself (schedule/job_turn.h) */
    bool is_of_job;    /* its turns are given for all cards of its job at the same moment (schedule/job_turn.h) */
    struct demand demand;
    uint32_t clients;                    /* connected */
    int32_t first_waiting, last_waiting; /* the queue of its waiting clients; -1 = empty */
    int64_t credit_ns;                   /* how long it may hold the card within its guarantee; below 0: debt */
    uint64_t refilled_at;                /* up to when the guarantee is in `credit_ns` */
    uint64_t virtual_time;               /* time held / weight, as tenant_virtual_time; the least goes first */
    uint64_t virtual_time_at_leave;      /* the schedule's virtual time when the tenant last became idle */
    uint64_t last_active_at;             /* when it last wanted or held the card */
    uint64_t waiting_since;    /* when it began to wait, or had its last turn if that is later; 0 = does not wait */
    uint64_t catch_up_ns;      /* how long it may hold the card before those that are ahead of their guarantee */
    struct recent_time recent; /* for which it has held the card, whoever waited */
    uint64_t floor_met_at;     /* when it had last held the card for TENANT_FLOOR_BUDGET, in one turn or in several */
    uint64_t floor_ns;         /* how long it has held the card since `floor_met_at` */
    struct overrun_budget overrun_budget;
    struct arrival_predictor arrivals; /* of `regular_client` */
    struct pause_predictor pauses;     /* of `regular_client` */
    int32_t regular_client;            /* the client that arrived last; -1 = none */
    uint64_t visit_ns;                 /* from its last arrival to when it left the card idle; 0 = unknown */
    uint64_t
        revoked_idle_since;   /* when it had become idle before its last turn was revoked for that; 0 = not revoked */
    uint64_t last_busy_until; /* `busy_until` of its region as it was last read; not trusted */
    uint32_t early_return_score;  /* 0 to 8; from 4 on its pauses are shorter than two handovers */
    uint32_t short_turn_score;    /* 0 to 8; latency-sensitive from 4 on */
    enum turn_ending last_ending; /* of its last turn whose end says something of it */
    uint64_t asked_back_ns;       /* the longest, of late, from the request to yield to the end of a turn */
    uint64_t suitable_turn_ns;    /* the longest turns of any tenant that suit its steps, as it says; 0 = any */
    struct tenant_use use;        /* what is measured to decide on joint turns */
    uint64_t held_ns;             /* how long it has held the card in all */
    struct turn_counts counts;    /* for the debug log */
};

/* A tenant with full credit that counts as latency-sensitive until its turns show otherwise. */
struct tenant tenant_new(const struct demand *demand, uint64_t now);

/* Adds the guarantee up to now to the credit, and refills the overrun budget. */
void tenant_refill(struct tenant *tenant, uint64_t now);

/* Charges `ns` for which the tenant held the card. Time for which no other tenant waited is not taken from the credit,
 * so that using an idle card costs no guaranteed time. */
void tenant_charge(struct tenant *tenant, uint64_t ns, bool others_wait);

/* The tenant's kernels have used the card for `ns` in joint turns, which charge it nothing. */
void tenant_note_joint_use(struct tenant *tenant, uint64_t ns, uint64_t now);

/* Whether it has held the card for clearly less than its guarantee in about the last second, and for less than 50 ms
 * since it rested: one that works without a pause is not to keep others waiting for all that it has not used before. */
bool tenant_is_behind(const struct tenant *tenant);

/* Whether it has held the card for clearly more than its guarantee in about the last second. A fixed share never has:
 * its process keeps to it, and what it held beyond are handovers. */
bool tenant_is_ahead(const struct tenant *tenant);

/* Whether it has waited for longer than a cycle of turns, within its guarantee, of which it has lately had clearly less
 * than all. The tenant is refilled up to now. */
bool tenant_is_overdue(const struct tenant *tenant);

/* Moves the time of two handovers, there and back, from the preempted tenant's charge to the preempting one's. */
void tenant_charge_handovers(struct tenant *preempted, struct tenant *preempting);

/* Moves what a handover from a group takes longer from the next tenant's charge to the group's. */
void tenant_charge_group_handover(struct tenant *group, struct tenant *next);

/* A client wants a turn while the tenant was idle: a new visit begins. */
void tenant_note_arrival(struct tenant *tenant, int client, uint64_t now);

/* A visit ends: the tenant wants no turn, and has left the card idle since `idle_since`. */
void tenant_note_left(struct tenant *tenant, uint64_t idle_since);

/* When the next visit is expected to begin, by the interval of the arrivals or by the pauses between visits; 0 = it
 * cannot be predicted. Moves on from expected arrivals that were missed. */
uint64_t tenant_next_arrival(struct tenant *tenant, uint64_t now);

/* Whether the tenant comes periodically and its present visit has lasted about as long as the one before. */
bool tenant_has_finished_visit(const struct tenant *tenant, uint64_t now);

/* Learns from the length of a turn that has ended. */
void tenant_learn_turn_length(struct tenant *tenant, bool was_short);

/* A turn has ended `ns` after it was asked back. */
void tenant_note_asked_back(struct tenant *tenant, uint64_t ns);

/* Its turn was revoked, because it had been idle since `idle_since`. */
void tenant_note_revoked(struct tenant *tenant, uint64_t idle_since);

/* Whether it usually came back so soon after its turn was revoked that the two handovers were not worth it. */
bool tenant_returns_early(const struct tenant *tenant);

/* Whether its turns are short and end by themselves, so that preempting another tenant for it is worth a handover. */
bool tenant_is_latency_sensitive(const struct tenant *tenant);

/* Whether it is latency-sensitive, and its last turn has shown it to be idle between its requests. A tenant also counts
 * as latency-sensitive while it is new, and as long as no other tenant has waited for a turn of its to end. */
bool tenant_is_known_to_rest(const struct tenant *tenant);

/* Whether it has wanted or held the card within the last two seconds. */
bool tenant_is_active(const struct tenant *tenant, uint64_t now);

/* Virtual time of `ns` held with a weight: ns * 100 / weight. */
uint64_t tenant_virtual_time(uint64_t ns, uint32_t weight);

/* The tenant becomes idle; `virtual_time` is the schedule's. */
void tenant_leave(struct tenant *tenant, uint64_t virtual_time);

/* The tenant wants the card now. Before an idle time of TENANT_FLOOR_INTERVAL it was not kept waiting, so its floor
 * counts from now on. */
void tenant_note_active(struct tenant *tenant, uint64_t now);

/* Whether it has held the card for more beyond its guarantee than it may save up: a kernel ran to its end. */
bool tenant_repays_much(const struct tenant *tenant);

/* Whether the tenant waits, and has held the card for less than TENANT_FLOOR_BUDGET in the last TENANT_FLOOR_INTERVAL.
 * Turns that were preempted count by what they had, so that many short ones are no reason to starve. */
bool tenant_is_below_floor(const struct tenant *tenant, uint64_t now);

/* The tenant is no longer idle: it keeps the lag it had at tenant_leave, so that idling neither gains nor loses time.
 * `virtual_time` is the schedule's. */
void tenant_return(struct tenant *tenant, uint64_t virtual_time);

/* Bounds how far the tenant's virtual time lags behind the schedule's. */
void tenant_bound_lag(struct tenant *tenant, uint64_t virtual_time, uint64_t lag_max);

#endif
