/* A container on one card: what it may hold the card for, what it did, and whether it is in a hurry. Pure: the clock is
 * an argument, in ns. What counts is time that it held the card by the arbiter's clock. */
#ifndef VGPU_ARBITER_TENANT_H
#define VGPU_ARBITER_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "arrival_predictor.h"
#include "common/arithmetic.h"
#include "demand.h"
#include "overrun_budget.h"

/* What the card takes from one context to another (measured on an H200). */
#define TENANT_HANDOVER (NS_PER_MS / 5)

/* Who did nothing for so long does not count as using the card. */
#define TENANT_ACTIVE_NS (2000 * NS_PER_MS)

/* A turn that takes no longer is a short one. */
#define TENANT_SHORT_TURN (3 * NS_PER_MS)

struct tenant {
    bool is_taken;
    bool is_contended; /* as its clients were told */
    struct demand demand;
    uint32_t clients;                    /* connected */
    int32_t first_waiting, last_waiting; /* of its clients that wait, in the order in which they asked; -1 = none */
    int64_t credit_ns;                   /* it may hold the card for so long within its guarantee; below 0: owed */
    uint64_t refilled_at;                /* up to when the guarantee has been counted in */
    uint64_t virtual_time;               /* what it held, over its weight: who is behind the others goes first */
    uint64_t virtual_time_at_leave; /* how far a tenant that always had its due was when it last neither waited nor had
                                       a turn */
    uint64_t last_active_at;        /* when it last wanted or held the card */
    uint64_t waiting_since;         /* or since when it had no turn; 0 = it does not wait */
    struct overrun_budget overrun_budget;
    struct arrival_predictor arrivals; /* of the client that came last */
    int32_t regular_client;            /* which that is, -1 = none */
    uint64_t visit_ns;                 /* how long after that it was done */
    uint32_t short_turn_score;         /* how surely its turns are short */
    uint64_t held_ns;                  /* in all */
};

struct tenant tenant_new(const struct demand *demand, uint64_t now);

/* Counts the guarantee in, up to now. */
void tenant_refill(struct tenant *tenant, uint64_t now);

/* It held the card for so long; what it held while nobody else waited is not owed. */
void tenant_charge(struct tenant *tenant, uint64_t ns, bool others_wait);

/* One's turn was ended early for the other, who owes the handovers there and back, and not the one. */
void tenant_charge_handovers(struct tenant *preempted, struct tenant *preempting);

/* A client of it comes after none of them wanted the card. */
void tenant_note_arrival(struct tenant *tenant, int client, uint64_t now);

/* Whether it comes at regular moments, and by then has stayed about as long as the last time. */
bool tenant_has_finished_visit(const struct tenant *tenant, uint64_t now);

/* A turn of it ended; whether that was a short one. */
void tenant_learn_turn_length(struct tenant *tenant, bool was_short);

/* Whether its turns are short and end by themselves, so that it is worth a handover to let it in at once. A new one
 * counts as such. */
bool tenant_is_latency_sensitive(const struct tenant *tenant);

bool tenant_is_active(const struct tenant *tenant, uint64_t now);

/* Time over weight: the unit of `virtual_time`. */
uint64_t tenant_virtual_time(uint64_t ns, uint32_t weight);

/* It is away, while one that always has its due is at `virtual_time`; or back: it has lost nothing then, and won
 * nothing. */
void tenant_leave(struct tenant *tenant, uint64_t virtual_time);
void tenant_return(struct tenant *tenant, uint64_t virtual_time);

/* Who was kept waiting by its betters is behind by so much at most. */
void tenant_bound_lag(struct tenant *tenant, uint64_t virtual_time, uint64_t lag_max);

#endif
