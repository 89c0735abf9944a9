/* Launches that are admitted to a turn although its budget is used, because its work does not drain, and may be waiting
 * for them (ADR 170). The container's overdraft (region/overdraft.h) lends the GPU time for them. Pure: the clock is an
 * argument. All times are in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_COMPUTE_TURN_EARLY_LAUNCHES_H
#define VGPU_COMPUTE_TURN_EARLY_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

struct early_launches {
    uint64_t lent;       /* GPU time of all loans, without what was taken back */
    uint64_t left;       /* of the last loan */
    uint64_t until;      /* after this time, the turn's work is looked at again before a launch is admitted */
    uint64_t begun_at;   /* time of the first loan; 0 = there was none */
    uint64_t before_ns;  /* estimates of the launches before it; what they took, when they have ended */
    uint64_t timed_ns;   /* from the turn's begin to the end of the launch that was timed before it; 0 = none was */
    unsigned before;     /* number of these launches */
    unsigned unknown;    /* early launches without an estimate */
    uint64_t known_ns;   /* estimates of the other early launches */
    uint64_t longest_ns; /* longest of the early launches that were timed; 0 = none was */
    uint64_t assumed_ns; /* what a launch without an estimate is assumed to take */
    bool is_like_first;  /* the launch that asks is of the kind of the turn's first one, which was never measured */
    bool is_loan_new;    /* no launch was admitted on the last loan */
    bool is_before_over; /* the launches before it have ended */
    bool is_beside;      /* other containers use the card */
};

/* What a launch needs: its estimate. Without one: 5 ms, or more if that is assumed, or if another early launch of the
 * turn took more, or if it may be as long as the first one, which has not ended. */
uint64_t early_launches_need(const struct early_launches *early, bool is_known, uint64_t estimate);

/* Takes back what is left of the loan; returns it. */
uint64_t early_launches_take_back(struct early_launches *early);

/* A loan of `loan` ns was given, after `launches` with estimates of `expected` ns together. */
void early_launches_lend(struct early_launches *early, uint64_t loan, unsigned launches, uint64_t expected,
                         uint64_t now);

/* Whether the turn has launches that are admitted early. */
bool early_launches_are_any(const struct early_launches *early);

/* Whether launches before the first loan have not ended, and so may be waiting for early ones. */
bool early_launches_may_be_awaited(const struct early_launches *early);

/* Whether a launch may go; `is_known`: it has an estimate. The first one of a loan may. */
bool early_launches_fit(const struct early_launches *early, bool is_known, uint64_t estimate, uint64_t now);

/* Such a launch went. */
void early_launches_add(struct early_launches *early, bool is_known, uint64_t estimate);

/* An early launch took `ns`. */
void early_launches_note_sample(struct early_launches *early, uint64_t ns);

/* No launch may go on this loan any more: what the turn's work waited for has happened. */
void early_launches_end(struct early_launches *early);

/* What launches without an estimate are assumed to take from now on, 20 ms at most, after one of them took `ns`: the
 * longest, which is forgotten within some of them. `before`: what was assumed; 0 = nothing is known. */
uint64_t early_launches_assume(uint64_t before, uint64_t ns);

/* The launch that was timed has ended, `ns` after the turn's first one, which is one of those before the first loan. */
void early_launches_note_timed(struct early_launches *early, uint64_t ns);

/* The launches before the first loan have ended, `took` ns after the turn's first one; that which was timed may not be
 * counted. */
void early_launches_note_before(struct early_launches *early, uint64_t took);

/* What the turn took of the card, if `measured` has passed from its first launch to the end of its last one. Beside
 * other containers, the early launches count their estimates. */
uint64_t early_launches_cost(const struct early_launches *early, uint64_t measured);

/* How much more than the loans the early launches have used until `now`, as far as they were timed; it counts as lent
 * from then on. A turn whose work never drains would else get a launch of any length on each full overdraft. */
uint64_t early_launches_lend_used(struct early_launches *early, uint64_t now);

/* How much of the loans was used, when the work has drained at `now` and took `measured` from the turn's first launch
 * on; 0 = not measured. */
uint64_t early_launches_used(const struct early_launches *early, uint64_t measured, uint64_t now);

#endif
