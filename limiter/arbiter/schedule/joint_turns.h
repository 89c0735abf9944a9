/* Turns that several tenants of a card hold at the same moment, and the measurements by which joint_mode.h decides on
 * them. While turns are joint there is no current turn: each client that asks gets a turn without a budget at once, and
 * keeps it. No tenant is charged for that time, neither credit nor virtual time: when turns are apart again, all begin
 * as equals, so a client that says too little about its kernels gains nothing by it.
 *
 * Part of the schedule (schedule_state.h). All times are in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_ARBITER_SCHEDULE_JOINT_TURNS_H
#define VGPU_ARBITER_SCHEDULE_JOINT_TURNS_H

#include "arbiter/schedule/schedule_state.h"

/* Whether turns are held jointly. */
bool joint_turns_are_on(const struct schedule *schedule);

/* Gives a client a joint turn, and takes it off its tenant's queue. Turns are held jointly. */
void joint_turns_grant(struct schedule *schedule, int client, uint64_t now);

/* Whether the client has a joint turn that its tenant may keep. */
bool joint_turns_has(const struct schedule *schedule, int client, uint64_t now);

/* The tenant is active again, or wants something else: what was measured says nothing any more. Joint turns end. */
void joint_turns_note_newcomer(struct schedule *schedule, int tenant, uint64_t now);

/* Whether the tenant's use of the card is to be read: it has clients, and is active. */
bool joint_turns_needs_use(const struct schedule *schedule, int tenant, uint64_t now);

/* What the tenant's region says of the card. Not trusted: more than the time that has passed does not count. */
struct joint_use {
    uint64_t gpu_ns;    /* GPU time of its kernels so far */
    uint64_t waited_ns; /* how long its threads have waited so far, for turns and for the card's work */
    uint64_t busy_until;
};

void joint_turns_note_use(struct schedule *schedule, int tenant, const struct joint_use *use, uint64_t now);

/* Decides whether turns are held jointly from now on. Called every few milliseconds, after all uses were noted. */
void joint_turns_run(struct schedule *schedule, uint64_t now);

#endif
