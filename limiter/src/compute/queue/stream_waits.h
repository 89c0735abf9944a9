/* Waits of streams for events, such as for work on another card (cuStreamWaitEvent). The card is idle meanwhile if all
 * launches of the turn are in one stream, so that time is not charged. Each wait has an event before and after it. The
 * thread that lets a stream wait keeps them until its next launch into that stream, or until it records the end of the
 * turn, which that launch did not fit into. Functions that call the driver keep other threads' captures valid, and none
 * of them waits for the card. */
#ifndef VGPU_COMPUTE_QUEUE_STREAM_WAITS_H
#define VGPU_COMPUTE_QUEUE_STREAM_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"

/* What a turn measures in each context; the time of further waits is charged. */
enum { STREAM_WAITS = 32 };

struct stream_wait {
    CUevent begin, end; /* kept for later turns */
};

struct stream_waits {
    struct stream_wait waits[STREAM_WAITS];
    unsigned count; /* atomic; of this turn. More than STREAM_WAITS: the others were not kept */
};

/* Whether the wait of a stream of the current context, which does not capture, for an event is to be measured; then it
 * records the event before the wait, and stream_waits_end, which the caller calls after it, the one behind it. */
bool stream_waits_begin(CUstream stream, CUevent awaited);
void stream_waits_end(CUstream stream);

/* The calling thread's waits of that stream are followed by a launch, or by the end event of a turn. `is_counted`: they
 * are of that turn. */
void stream_waits_take(struct stream_waits *waits, CUcontext context, CUstream stream, bool is_counted);

/* Prepares for the next turn; keeps the events. */
void stream_waits_reset(struct stream_waits *waits);

/* The sum of their ns between two events, the first one of the turn and the last one in its stream. */
uint64_t stream_waits_ns(const struct stream_waits *waits, CUevent begin, CUevent end);

/* The ns between two events that have passed; 0 if the driver does not say. */
uint64_t stream_waits_between(CUevent begin, CUevent end);

void stream_waits_destroy(const struct stream_waits *waits);

/* A context ends: what threads keep may be of it, and is forgotten. */
void stream_waits_forget(void);

#endif
