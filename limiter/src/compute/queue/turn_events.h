/* CUDA events around the launches of a turn, which measure its GPU time. Each context has one event before its first
 * launch (begin), each stream one after its last launch (end); the time between is the turn's. The sampled launch has
 * an event of its own before and after it. A probe is an event after a launch in the middle of the turn. No event is
 * recorded into a capturing stream.
 *
 * Locks: turn_events_find_slot, turn_events_probe and turn_events_drop_probe need LOCK_GATE. The launching thread calls
 * turn_events_before_launch and turn_events_after_launch without it. The others, where not said otherwise, need
 * LOCK_GATE or the ownership of the gate (gate_machine.h). Functions that call the driver keep other threads' captures
 * valid (capture.h), and none of them waits for the card. */
#ifndef VGPU_COMPUTE_QUEUE_TURN_EVENTS_H
#define VGPU_COMPUTE_QUEUE_TURN_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/queue/stream_waits.h"
#include "driver/abi.h"

/* What a turn can measure: contexts, and streams in each of them. */
enum { TURN_EVENTS_CONTEXTS = 16, TURN_EVENTS_STREAMS = 64 };

/* The end event of one stream. */
struct stream_event {
    CUstream stream;
    const void *thread; /* identifies the thread of a per-thread default stream; NULL for other streams */
    CUevent event;      /* atomic, the launching thread creates it; kept for later turns */
    bool has_event;     /* `event` exists, or an admitted launch is about to create it */
    bool is_unrecorded; /* atomic; a launch followed the last recording of `event` */
    bool is_recorded;   /* atomic; `event` was recorded in this turn */
    uint64_t segment;   /* number of the last segment with a launch in the stream; 0 = there was none (segments.h) */
};

/* The events of one context. */
struct context_events {
    CUcontext context;     /* NULL: the entry is free */
    CUevent begin;         /* before the first launch of the turn */
    uint64_t first_at;     /* when `begin` had been recorded; 0 = its stream had work, so the launch was not awaited */
    uint64_t first_ns;     /* how long the host then took until the first launch was with the card */
    CUevent sample_begin;  /* before the sampled launch, if that is not the first launch */
    CUevent sample_end;    /* after the sampled launch */
    bool has_sample_begin; /* `sample_begin` was recorded; otherwise the sample begins at `begin` */
    bool is_sampled;       /* `sample_end` was recorded in this turn */
    bool is_stream_idle;   /* the stream of the sampled launch had no work before it */
    CUevent probe;         /* after the last launch that was probed */
    CUevent segment_begin; /* atomic; of a sample in the context (queue_sample.h) */
    CUevent segment_end;   /* atomic; as segment_begin */
    struct stream_waits waits;
    unsigned count; /* entries of `events` that are used in this turn */
    struct stream_event events[TURN_EVENTS_STREAMS];
};

struct turn_events {
    struct context_events contexts[TURN_EVENTS_CONTEXTS];
    CUevent probe; /* atomic; the pending probe, NULL if there is none. The launching thread sets it */
    bool is_mixed; /* holds launches of an earlier turn, too, so nothing is measured */
};

/* Where the events of an admitted launch go. */
struct launch_slot {
    CUcontext context;
    struct context_events *context_events; /* NULL: the table is full, and the launch is not measured */
    struct stream_event *end;
    bool is_first;              /* first launch of the turn in its context: records `begin` */
    bool creates_event;         /* this launch creates the event of `end` */
    bool is_sampled;            /* this launch is timed alone */
    bool records_end_at_once;   /* `end` is recorded right after this launch, which may be the last for a while */
    CUevent *probe_out;         /* where to store the probe after this launch; NULL = no probe */
    unsigned gate;              /* index of the gate whose words are used (queue_page.h) */
    uint32_t segment;           /* number of the launch's segment */
    bool waits;                 /* the stream first waits until the segment is opened */
    bool marks;                 /* then it writes that the segment has begun */
    bool reads_sample;          /* the launching thread calls queue_sample_read */
    bool *sample_idle;          /* where to store whether the stream has no work; NULL = nowhere */
    CUevent *sample_end_before; /* events of a sample (queue_sample.h): before all else; before and after the launch */
    CUevent *sample_begin, *sample_end_after; /* NULL = none */
};

/* The stream that NULL means, by the function that it is passed to: LEGACY for the usual functions, PER_THREAD for
 * their variants with per-thread default streams (suffix _ptsz). */
#define STREAM_OR_LEGACY(stream)     ((stream) ? (stream) : CU_STREAM_LEGACY)
#define STREAM_OR_PER_THREAD(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

/* Whether the stream captures, or may not be used because another stream does (the legacy default stream then). */
bool turn_events_is_capturing(CUstream stream);

/* Fills `slot` for a launch into `stream` of the current context `context`; false, and an empty slot, if the turn's
 * tables are full. */
bool turn_events_find_slot(struct turn_events *events, CUcontext context, CUstream stream, struct launch_slot *slot);

/* Forgets that the end of a stream is to be recorded. */
void turn_events_drop_end(struct turn_events *events, CUstream stream);

/* Whether a stream has launches after the last recording of its end event; NULL asks about every stream. */
bool turn_events_has_unrecorded_end(const struct turn_events *events, CUstream stream);

/* Records the events that precede the launch. */
void turn_events_before_launch(const struct launch_slot *slot);

/* Records the events that follow the launch, or notes that the end of its stream is to be recorded later. */
void turn_events_after_launch(const struct launch_slot *slot);

/* Whether the streams with launches after the last recording of their end events have no work. A stream that captures
 * counts as one without. */
bool turn_events_unrecorded_are_idle(const struct turn_events *events);

/* Records the end events that are still to be recorded, of one stream, or of all if `stream` is NULL; whether there
 * were any. */
bool turn_events_record_ends(struct turn_events *events, CUstream stream);

/* The pending probe; NULL if there is none. */
CUevent turn_events_probe(const struct turn_events *events);

/* Whether the card has passed the probe. The caller holds no lock, and prevents that the probe is destroyed meanwhile.
 */
bool turn_events_is_probe_passed(CUevent probe);

/* Forgets the pending probe. */
void turn_events_drop_probe(struct turn_events *events);

/* Whether the card has begun with the turn's first launch in any context. */
bool turn_events_have_begun(const struct turn_events *events);

/* Whether the card has passed every end event that was recorded in this turn. An event that the driver rejects counts
 * as passed. */
bool turn_events_are_done(const struct turn_events *events);

/* As turn_events_are_done; `with_sample`: also that of the launch that is sampled. */
bool turn_events_ends_are_done(const struct turn_events *events, bool with_sample);

/* As turn_events_measured_ns, likewise. */
uint64_t turn_events_ends_ns(const struct turn_events *events, bool with_sample);

/* The ns from the first launch to the last end event, as the sum over the contexts; 0 if the driver does not say, or
 * the events are mixed. */
uint64_t turn_events_measured_ns(const struct turn_events *events);

/* How much of that the card was idle, because the only stream with launches in a context waited for an event. */
uint64_t turn_events_waited_ns(const struct turn_events *events);

/* The ns of the sampled launch, and in `is_stream_idle` whether its stream had no work before it; 0 without a sample,
 * or if the events are mixed. */
uint64_t turn_events_sampled_ns(const struct turn_events *events, bool *is_stream_idle);

/* The sample of the turn was read; another launch may be sampled. */
void turn_events_end_sample(struct turn_events *events);

/* Prepares for the next turn; keeps the CUDA events. No launch of the turn before is in the driver. */
void turn_events_reset(struct turn_events *events);

/* Instead of turn_events_reset, if a launch of the turn before is still in the driver. */
void turn_events_note_mixed(struct turn_events *events);

/* Destroys the CUDA events, before the contexts that they belong to end. `events` is a copy that no launch can reach.
 */
void turn_events_destroy(const struct turn_events *events);

#endif
