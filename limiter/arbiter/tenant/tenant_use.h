/* What a tenant's region says of its use of the card, and how it was served when turns were held jointly, compared with
 * turns apart (schedule/joint_turns.h). Times that the region says are not trusted: in the long run no more is counted
 * than the time that has passed. Pure: the clock is an argument. Times are in ns; points in time are CLOCK_MONOTONIC.
 *
 * A measurement lasts from tenant_use_begin on, and `passed` is its length. */
#ifndef VGPU_ARBITER_TENANT_TENANT_USE_H
#define VGPU_ARBITER_TENANT_TENANT_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "arbiter/tenant/recent_time.h"

/* A counter of the region, and how much more than was read it may have grown by. */
struct tenant_counter {
    uint64_t value, possible_ns;
};

struct tenant_use {
    uint64_t read_at;                  /* when the region was last read; 0 = not yet */
    struct tenant_counter gpu, waited; /* as they were read then */
    uint64_t used_ns;                  /* GPU time of its kernels in the measurement */
    uint64_t waiting_ns;               /* how long it has waited in it, for turns and for its kernels */
    uint32_t apart_permille;           /* of the time, that its kernels took when turns were last apart */
    uint32_t apart_served;             /* likewise, of the time that it waited */
    uint32_t apart_waiting;            /* likewise, how long it waited, in permille of its kernels' time */
    struct recent_time recent;         /* GPU time of its kernels */
    bool is_new;                       /* it became active in the measurement */
};

/* Adds what the region says now: GPU time of all kernels so far, and how long all threads have waited so far. Returns
 * the GPU time that is new. */
uint64_t tenant_use_read(struct tenant_use *use, uint64_t gpu_ns, uint64_t waited_ns, uint64_t now);

/* The next measurement begins. */
void tenant_use_begin(struct tenant_use *use);

/* A measurement of turns apart has ended: later ones are compared with it. */
void tenant_use_note_apart(struct tenant_use *use, uint64_t passed);

/* Whether the tenant has less of the card than apart although it wants more, or is served less of the time that it
 * waits, as far as its guarantee (percent) covers that; without a guarantee, less than half. */
bool tenant_use_is_behind(const struct tenant_use *use, uint32_t guarantee, uint64_t passed);

/* Whether a tenant that uses less than its guarantee waits clearly longer for the same work than apart: where it waits
 * for a few short requests, how they are served is chance. `window` is the length of the measurement by which it is
 * judged: with more than has passed, whether it is slower in all of it even if it waits as apart from now on. */
bool tenant_use_is_slower(const struct tenant_use *use, uint32_t guarantee, uint64_t passed, uint64_t window);

/* Whether a tenant with a guarantee asks for something, and has no more than its guarantee. */
bool tenant_use_asks_within(const struct tenant_use *use, uint32_t guarantee, uint64_t passed);

/* Whether a tenant has clearly more of the card than its guarantee. `window` as above: with more than has passed,
 * whether it has in all of it even if it uses nothing from now on. */
bool tenant_use_is_ahead(const struct tenant_use *use, uint32_t guarantee, uint64_t window);

/* Whether a tenant with a guarantee, which waited when turns were apart, has not waited so far: its requests come
 * seldom, and nothing is known of how they are served now. */
bool tenant_use_is_unseen(const struct tenant_use *use, uint32_t guarantee, uint64_t passed);

#endif
