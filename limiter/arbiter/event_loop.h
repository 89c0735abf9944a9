/* What the arbiter waits for: descriptors and the clock. */
#ifndef VGPU_ARBITER_EVENT_LOOP_H
#define VGPU_ARBITER_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* Something with a descriptor. `ready` may close itself, but no other source. */
struct event_source {
    void (*ready)(struct event_source *source);
    int fd;
};

/* False where the system has no more of what it takes. */
bool event_loop_open(void);

bool event_loop_add(struct event_source *source);

/* Hears nothing of it for a while, and again. */
void event_loop_mute(struct event_source *source, bool is_muted);

/* Closes its descriptor too. */
void event_loop_remove(struct event_source *source);

/* Waits until `until` (ns of CLOCK_MONOTONIC) or something is ready, and lets that be dealt with. */
void event_loop_wait(uint64_t until);

#endif
