/* Events around a turn's launches: one before the first in each context, and one after the last in each stream. What
 * lies between is how long the card was the turn's. And one before and after a single launch, which is a sample. A
 * stream that captures is never given one. */
#ifndef VGPU_COMPUTE_TURN_EVENTS_H
#define VGPU_COMPUTE_TURN_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"

enum { TURN_EVENTS_CONTEXTS = 16, TURN_EVENTS_STREAMS = 64 };

struct stream_event {
    CUstream stream;
    const void *thread; /* whose, of a per-thread default stream; else NULL */
    CUevent event;      /* atomically; kept from turn to turn */
    bool has_event;     /* the event, or a launch is about to make it */
    bool is_unrecorded; /* atomically: launched into since it was recorded */
    bool is_recorded;   /* atomically: in this turn */
};

struct context_events {
    CUcontext context; /* NULL = free */
    CUevent begin;
    CUevent sample_begin; /* before the sampled launch, where that is not the first */
    CUevent sample_end;
    bool has_sample_begin;
    bool is_sampled;
    bool is_stream_idle; /* its stream had nothing to do when it was launched */
    CUevent probe;       /* after the last launch that was probed */
    unsigned count;      /* of events in use in this turn */
    struct stream_event events[TURN_EVENTS_STREAMS];
};

struct turn_events {
    struct context_events contexts[TURN_EVENTS_CONTEXTS];
    CUevent probe; /* atomically: the one that is on its way, or NULL */
};

/* A launch on its way: where its events go. */
struct launch_slot {
    struct context_events *context_events; /* NULL: there is no room for its events */
    struct stream_event *end;
    bool is_first;            /* in its context */
    bool creates_event;       /* of the mark's event */
    bool is_sampled;          /* it alone is measured too */
    bool records_end_at_once; /* its end is marked at once: it may be the last for a while */
    CUevent *probe_out;       /* where to put its probe, NULL: none is wanted */
};

/* What the driver makes of NULL, by the function that it is passed to. */
#define LEGACY(stream)     ((stream) ? (stream) : CU_STREAM_LEGACY)
#define PER_THREAD(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

/* Whether the stream captures, or must not be touched because another does. */
bool turn_events_is_capturing(CUstream stream);

/* The place of a launch into a stream of the current context; false where the turn has no room for it. */
bool turn_events_find_slot(struct turn_events *events, CUcontext context, CUstream stream, struct launch_slot *slot);

/* Whether an end is still to be marked, in that stream or (NULL) in any. */
bool turn_events_has_unrecorded_end(const struct turn_events *events, CUstream stream);

/* Around the launch, by its own thread. */
void turn_events_before_launch(const struct launch_slot *slot);
void turn_events_after_launch(const struct launch_slot *slot);

/* Marks the ends that are due, in one stream or (NULL) in all; whether there were any. */
bool turn_events_record_ends(struct turn_events *events, CUstream stream);

/* The probe on its way, NULL where none is, and whether the card has passed it. */
CUevent turn_events_probe(const struct turn_events *events);
bool turn_events_is_probe_passed(CUevent probe);
void turn_events_drop_probe(struct turn_events *events);

/* Whether anything of the turn has begun, as far as the driver says. */
bool turn_events_have_begun(const struct turn_events *events);

/* Whether all that is marked is done. */
bool turn_events_are_done(const struct turn_events *events);

/* From the first beginning to the last end, in ns, the contexts' together; 0 where the driver does not say. And the
 * sampled launch; `is_prompt`: its stream had nothing to do when it was launched. */
uint64_t turn_events_measured_ns(const struct turn_events *events);
uint64_t turn_events_sampled_ns(const struct turn_events *events, bool *is_stream_idle);

/* Makes ready for the next turn. */
void turn_events_reset(struct turn_events *events);

/* Gives the events back, of which no launch is to know any more: a context of theirs may be about to end. */
void turn_events_destroy(const struct turn_events *events);

#endif
