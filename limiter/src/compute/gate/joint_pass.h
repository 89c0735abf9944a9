/* Launches that pass the gate without its lock, in a turn that the process holds jointly with others. Where small
 * programs run side by side the host's time counts, and the gate costs a launch a microsecond. So one launch in 64, or
 * in a millisecond, takes the gate's way, counts those that have passed, and keeps the turn's bounds; the others only
 * add up their estimates, as one of their kind had it when it took that way.
 *
 * All fields are atomic: threads that pass hold no lock. What one adds late is counted with the next launch. */
#ifndef VGPU_COMPUTE_GATE_JOINT_PASS_H
#define VGPU_COMPUTE_GATE_JOINT_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/link/arbiter_link.h"

enum { JOINT_PASS_KINDS = 512 };

/* A pass of zeros is closed. */
struct joint_pass {
    uint32_t turn;     /* the number of the turn in which launches may pass; 0 = none may */
    uint32_t launches; /* that have passed since joint_pass_take */
    uint64_t used_ns;  /* the sum of their estimates */
    uint64_t until;    /* clock_ticks() until which launches may pass */
    struct {
        uint64_t key; /* of the kind of launch (estimates.h) */
        uint64_t ns;  /* its estimate */
    } kinds[JOINT_PASS_KINDS];
};

/* Whether a launch passes: the turn is open, the arbiter does not ask it back, and its kind is known. Takes no lock. */
bool joint_pass_try(struct joint_pass *pass, const struct arbiter_link *link, uint64_t key);

/* A launch of this kind was admitted to the turn: more may pass for a while. The caller holds LOCK_GATE. */
void joint_pass_open(struct joint_pass *pass, uint32_t turn, uint64_t key, uint64_t estimate);

/* None may pass any more. Any thread may call it. */
void joint_pass_close(struct joint_pass *pass);

struct passed_launches {
    uint32_t launches;
    uint64_t used_ns;
};

/* Counts the launches that have passed since the last call. Any thread may call it. */
struct passed_launches joint_pass_take(struct joint_pass *pass);

#endif
