/* What is done on the cards of a job (job_cards.h): they are looked at, and get, keep and lose the job's turns, as
 * job/co_schedule.h decides. */
#ifndef VGPU_ARBITER_CONTAINER_JOB_TURNS_H
#define VGPU_ARBITER_CONTAINER_JOB_TURNS_H

#include "arbiter/container/job_cards.h"

/* Reads when the cards of a job in several containers will have repaid what their fixed shares owe: before
 * job_turns_look. */
void job_turns_read_debts(struct job *job, uint64_t now);

/* What the cards of the job say of it together. */
struct co_view job_turns_look(struct job *job, uint64_t now);

/* What has to be done in a state, whatever is decided next: a job that waits on one card waits on all, one that runs
 * goes on where it asks again, and one that does not answer loses what no other tenant waits for. Whether anything was
 * done. `view`: of the job, now. */
bool job_turns_keep_up(struct job *job, enum co_state state, const struct co_view *view, uint64_t now);

/* The job comes to another state; `view`: of the job, before. */
void job_turns_carry_out(struct job *job, enum co_state state, const struct co_view *view, uint64_t now);

/* When the cards' progress is to be looked at again; UINT64_MAX: after the next event. */
uint64_t job_turns_look_at(const struct job *job, uint64_t now);

#endif
