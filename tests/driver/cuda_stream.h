/* Streams, events and captures, shared by the files about them. */
#ifndef CUDA_STREAM_H
#define CUDA_STREAM_H

#include "cuda_driver.h"

struct CUstream_st {
    struct CUstream_st *next;
    CUcontext context;
    unsigned flags;
    uint64_t busy_until;
    uint64_t capture; /* number of the one it is or was part of; 0 = never */
};

struct CUevent_st {
    uint64_t at;      /* when its work is done; 0 = never recorded */
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
/* The default streams (NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD) are the context's own clock. */
static inline bool is_default(CUstream stream) { return (uintptr_t)stream <= 2; }

static inline uint64_t *clock_of(CUstream stream, CUcontext context) {
    return is_default(stream) ? &context->busy_until : &stream->busy_until;
}

#endif
