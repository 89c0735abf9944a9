/* Tenancies: a container is a tenant of each card that its processes use. */
#ifndef VGPU_ARBITER_CONTAINER_TENANCY_H
#define VGPU_ARBITER_CONTAINER_TENANCY_H

#include "arbiter/container/container.h"

/* The container's tenancy on a board, created if there is none; NULL if there are too many tenants or the limits do not
 * name the card. */
struct tenancy *tenancy_of(struct container *container, struct card_board *board, uint64_t now);

/* Tells each card of the container what the container's limits say now. */
void tenancy_update_all(struct container *container, uint64_t now);

/* Removes the container from its cards. Its connections have been closed before. */
void tenancy_end_all(struct container *container);

#endif
