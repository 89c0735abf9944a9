/* Processes that are connected: how they are let in, and what they say. */
#ifndef VGPU_CONNECTION_H
#define VGPU_CONNECTION_H

#include "container.h"

/* Somebody is at a container's door. */
void connection_knocked(struct source *door);

/* Ends all of a container. */
void connections_close(struct container *container);

#endif
