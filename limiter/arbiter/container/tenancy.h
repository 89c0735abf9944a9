/* Tenancies: a container is a tenant of each card that its processes use, or a member of one, which is its group in
 * space. */
#ifndef VGPU_ARBITER_CONTAINER_TENANCY_H
#define VGPU_ARBITER_CONTAINER_TENANCY_H

#include "arbiter/container/container.h"

/* The container's tenancy on a board, created if there is none; NULL if there are too many tenants or the limits do not
 * name the card. `is_member`: that of its group, which its limits name. */
struct tenancy *tenancy_of(struct container *container, struct card_board *board, bool is_member, uint64_t now);

/* Tells each card of the container what the container's limits say now. */
void tenancy_update_all(struct container *container, uint64_t now);

/* Whether the container is a member of a group that its limits do not name any more. */
bool tenancy_has_left_group(const struct container *container);

/* Removes the container from its cards. Its connections have been closed before. */
void tenancy_end_all(struct container *container, uint64_t now);

#endif
