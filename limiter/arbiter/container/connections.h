/* The connections of clients: accepts them, performs the handshake, and passes messages to the schedules. */
#ifndef VGPU_ARBITER_CONTAINER_CONNECTIONS_H
#define VGPU_ARBITER_CONTAINER_CONNECTIONS_H

#include "arbiter/container/container.h"

/* Accepts one connection at a container's listening socket. Called by the event loop when `listener` is ready. */
void connections_accept(struct event_source *listener);

/* Closes the connections on which no hello came in time. To be called every half second. */
void connections_close_silent(uint64_t now);

/* Closes every connection of a container. */
void connections_close(struct container *container);

#endif
