/* Streams, events and captures, shared by the files about them. */
#ifndef CUDA_STREAM_H
#define CUDA_STREAM_H

#include "driver.h"

struct CUstream_st {
    struct CUstream_st *next;
    CUcontext context;
    unsigned flags;
    uint64_t position; /* in its context's work: behind all of its own */
    uint64_t capture;  /* number of the one it is or was part of; 0 = never */
};

struct CUevent_st {
    CUevent next;   /* of the context's whose time is not known yet */
    CUevent *link;  /* where that list names it; NULL = it is not in it */
    SimQueue queue; /* it is behind a position of it; none = never recorded */
    uint64_t position;
    uint64_t at;      /* when it passed, as far as known */
    CUdevice device;  /* where it was recorded */
    uint64_t capture; /* number of the one it was recorded in; 0 = in none */
};

/* What is done in streams goes into a graph instead. */
typedef struct Capture {
    struct Capture *next;
    uint64_t number;
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureMode mode;
    const void *thread; /* that began it */
    bool invalid;
} Capture;

Capture *capture_numbered(uint64_t number); /* NULL once it has ended */
Capture *capture_of(CUstream stream);       /* NULL when the stream is not captured */
/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED for a captured stream, whose capture is then invalid. */
CUresult capture_forbids_in(CUstream stream);
/* --- cuda/context_queue.c --- */

/* So much more for the card to do; its position. */
CUresult context_work(CUcontext context, uint64_t ns, uint64_t *position);
/* Records it behind that position. */
CUresult event_mark(CUevent event, CUcontext context, uint64_t after);
/* Makes it one that was never recorded. */
void event_forget(CUevent event);
/* When it passed, CLOCK_MONOTONIC ns; 0 = not yet. */
uint64_t event_passed(CUevent event);
bool queue_passed(SimQueue queue, uint64_t position);

/* The default streams (NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD) wait for all of the context's work. */
static inline bool is_default(CUstream stream) { return (uintptr_t)stream <= 2; }

static inline uint64_t *position_of(CUstream stream, CUcontext context) {
    return is_default(stream) ? &context->submitted : &stream->position;
}

#endif
