/* What the containers of one job may have at most: the lowest share and priority and the weakest policy of them count
 * for all. Otherwise a container could have turns by the claims of another one, which has more. */
#ifndef VGPU_ARBITER_CONTAINER_JOB_TERMS_H
#define VGPU_ARBITER_CONTAINER_JOB_TERMS_H

#include "arbiter/container/job_cards.h"

/* Bounds the demand of each member, as of its next tenancy_update_all. Called when a member is new, changed or gone. */
void job_terms_apply(struct job *job);

#endif
