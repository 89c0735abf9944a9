/* All jobs: the linked cards of a container, or the containers of one job, which have their turns at the same moment.
 * Finds out which there are (job_cards.h), shows them to job/co_schedule.h, and lets do on their cards what it decides
 * (job_turns.h). */
#ifndef VGPU_ARBITER_CONTAINER_JOBS_H
#define VGPU_ARBITER_CONTAINER_JOBS_H

#include "arbiter/container/container.h"

/* Reads which cards of the container are linked, and which job it is of. Called twice a second, and
 * when a client of a container that is of a job has connected. */
void jobs_refresh(struct container *container);

/* The container is of no job any more. Called before its tenancies end. */
void jobs_drop(const struct container *container);

/* Gives and asks back the turns of jobs, as far as that is due. Whether anything has changed: then the schedules of
 * these cards are to run. */
bool jobs_run(uint64_t now);

/* When jobs_run is due although nothing has happened; UINT64_MAX: it is not. */
uint64_t jobs_look_at(uint64_t now);

#endif
