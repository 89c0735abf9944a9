/* The fields of streams and events. */
#ifndef SIMGPU_CUDA_QUEUE_STREAM_STATE_H
#define SIMGPU_CUDA_QUEUE_STREAM_STATE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/context/context.h"
#include "ledger/card_time.h"

struct CUstream_st {
    struct CUstream_st *next;
    CUcontext context;
    struct channel *channel; /* of the context */
    unsigned flags;
    const void *thread; /* of the default stream of a thread; else NULL */
    uint32_t fills;     /* percent of the multiprocessors that its last kernel fills; 0 = all */
    uint64_t position;  /* in the channel's queue, behind all work of this stream */
    uint64_t capture;   /* number of the capture that the stream is or was part of; 0 = none so far */
};

struct CUevent_st {
    CUevent next;            /* in the context's list of events whose time is not known yet */
    CUevent *link;           /* the pointer of that list that points here; NULL = not in the list */
    struct card_queue queue; /* of the stream's channel; not open = the event was never recorded */
    uint64_t position;       /* in the queue */
    uint64_t at;             /* CLOCK_MONOTONIC ns when it passed; 0 = not known yet */
    CUdevice device;         /* of the last cuEventRecord */
    uint64_t capture;        /* number of the capture it was recorded in; 0 = none */
    unsigned flags;
    uint64_t shared_id; /* of an event that other processes may know (ledger/shared_events.h); 0 = of no such event */
};

/* Whether the handle is NULL, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD; stream_find (cuda/stream/stream.h) yields the
 * stream that it means. */
static inline bool stream_is_default(CUstream stream) { return (uintptr_t)stream <= 2; }

/* Whether it is the legacy default stream, and not only a handle of it. */
static inline bool stream_is_legacy(CUstream stream) { return stream->channel == &stream->context->channel[0]; }

#endif
