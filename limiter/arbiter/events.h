/* What the arbiter waits for: descriptors and the clock. */
#ifndef VGPU_EVENTS_H
#define VGPU_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Something with a descriptor. `ready` may close itself, but no other source. */
struct source {
    void (*ready)(struct source *source);
    int fd;
};

/* False where the system has no more of what it takes. */
bool events_open(void);

bool events_add(struct source *source);

/* Hears nothing of it for a while, and again. */
void events_mute(struct source *source, bool is_muted);

/* Closes its descriptor too. */
void events_remove(struct source *source);

/* Waits until `until` (ns of CLOCK_MONOTONIC) or something is ready, and lets that be dealt with. */
void events_wait(uint64_t until);

#endif
