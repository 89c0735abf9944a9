/* Processes that are connected: how they are let in, and what they say. */
#ifndef VGPU_ARBITER_CONNECTIONS_H
#define VGPU_ARBITER_CONNECTIONS_H

#include "container.h"

/* Somebody is at a container's door. */
void connections_accept(struct event_source *door);

/* Ends all of a container. */
void connections_close(struct container *container);

#endif
