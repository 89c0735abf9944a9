/* Events around a turn's launches: one before the first in each context, and one after the last in each stream. What
 * lies between is how long the card was the turn's. And one before and after a single launch, which is a sample. A
 * stream that captures is never given one. */
#ifndef VGPU_MARKS_H
#define VGPU_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"

enum { MARKS_CONTEXTS = 16, MARKS_STREAMS = 64 };

struct mark {
    CUstream stream;
    const void *thread; /* whose, of a per-thread default stream; else NULL */
    CUevent event;      /* atomically; kept from turn to turn */
    bool is_made;       /* the event, or a launch is about to make it */
    bool is_due;        /* atomically: launched into since it was recorded */
    bool is_recorded;   /* atomically: in this turn */
};

struct span {
    CUcontext context; /* NULL = free */
    CUevent begin;
    CUevent from; /* before the sampled launch, where that is not the first */
    CUevent sample;
    bool is_from;
    bool is_sampled;
    bool is_prompt; /* its stream had nothing to do when it was launched */
    CUevent probe;  /* after the last launch that was probed */
    unsigned count; /* of marks in use in this turn */
    struct mark marks[MARKS_STREAMS];
};

struct marks {
    struct span spans[MARKS_CONTEXTS];
    CUevent probe; /* atomically: the one that is on its way, or NULL */
};

/* A launch on its way: where its marks go. */
struct place {
    struct span *span; /* NULL: there is no room for its marks */
    struct mark *mark;
    bool is_first;   /* in its context */
    bool is_maker;   /* of the mark's event */
    bool is_sampled; /* it alone is measured too */
    bool is_eager;   /* its end is marked at once: it may be the last for a while */
    CUevent *probe;  /* where to put its probe, NULL: none is wanted */
};

/* What the driver makes of NULL, by the function that it is passed to. */
#define LEGACY(stream)     ((stream) ? (stream) : CU_STREAM_LEGACY)
#define PER_THREAD(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

/* Whether the stream captures, or must not be touched because another does. */
bool marks_is_capturing(CUstream stream);

/* The place of a launch into a stream of the current context; false where the turn has no room for it. */
bool marks_find(struct marks *marks, CUcontext context, CUstream stream, struct place *place);

/* Whether an end is still to be marked, in that stream or (NULL) in any. */
bool marks_are_due(const struct marks *marks, CUstream stream);

/* Around the launch, by its own thread. */
void marks_before(const struct place *place);
void marks_after(const struct place *place);

/* Marks the ends that are due, in one stream or (NULL) in all; whether there were any. */
bool marks_end(struct marks *marks, CUstream stream);

/* The probe on its way, NULL where none is, and whether the card has passed it. */
CUevent marks_probe(const struct marks *marks);
bool marks_has_passed(CUevent probe);
void marks_drop_probe(struct marks *marks);

/* Whether anything of the turn has begun, as far as the driver says. */
bool marks_have_begun(const struct marks *marks);

/* Whether all that is marked is done. */
bool marks_are_done(const struct marks *marks);

/* From the first beginning to the last end, in ns, the contexts' together; 0 where the driver does not say. And the
 * sampled launch; `is_prompt`: its stream had nothing to do when it was launched. */
uint64_t marks_measured(const struct marks *marks);
uint64_t marks_sampled(const struct marks *marks, bool *is_prompt);

/* Makes ready for the next turn. */
void marks_reset(struct marks *marks);

/* Gives the events back, of which no launch is to know any more: a context of theirs may be about to end. */
void marks_destroy(const struct marks *marks);

#endif
