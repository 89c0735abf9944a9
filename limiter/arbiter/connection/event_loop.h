/* The event loop: waits for descriptors (epoll) and a point in time (timerfd). */
#ifndef VGPU_ARBITER_CONNECTION_EVENT_LOOP_H
#define VGPU_ARBITER_CONNECTION_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* A descriptor, and the function that is called when it is readable. The function may remove sources, and may use the
 * memory of a removed source for another, whose function may then be called although it is not readable. A source does
 * not move while it is in the loop. */
struct event_source {
    void (*ready)(struct event_source *source);
    int fd; /* -1: none */
};

/* Prepares the loop; false, with errno, if the system has no more descriptors or memory. */
bool event_loop_open(void);

/* Adds a source; false, with errno, if the system refuses it. */
bool event_loop_add(struct event_source *source);

/* Stops watching a source, or watches it again. */
void event_loop_mute(struct event_source *source, bool is_muted);

/* Removes a source and closes its descriptor; sets `fd` to -1. */
void event_loop_remove(struct event_source *source);

/* Waits until a source is ready or `until` (CLOCK_MONOTONIC in ns) is reached, and calls the functions of those that
 * are ready. */
void event_loop_wait(uint64_t until);

#endif
