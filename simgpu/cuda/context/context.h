/* Contexts, and each thread's stack of current contexts. */
#ifndef SIMGPU_CUDA_CONTEXT_CONTEXT_H
#define SIMGPU_CUDA_CONTEXT_CONTEXT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "hardware/timeline.h"
#include "ledger/card_time.h"

/* A hardware channel of a context: the work of some of its streams, in the order of their launches. The first channel
 * is the legacy default stream's. A real card has 8 by default, and up to 32 (CUDA_DEVICE_MAX_CONNECTIONS). */
struct channel {
    struct card_queue queue; /* not open before the first work */
    uint64_t submitted;      /* position behind all work */
    uint64_t runs_read;      /* runs of the queue when the times of the context's events were last read */
    uint64_t blocking;       /* position behind the work of streams that synchronize with the legacy default stream */
    uint64_t joined;         /* up to there the legacy default stream waits for this channel */
    uint64_t legacy;         /* up to there this channel waits for the legacy default stream */
    unsigned streams;        /* that live */
};

struct CUctx_st {
    struct CUctx_st *next;
    unsigned long long id;
    CUdevice device;
    unsigned flags;
    bool is_primary;
    CUcontext owner;   /* of a green context: the primary context, which all its objects belong to; else NULL */
    uint64_t overhead; /* bytes charged for the context itself */
    uint64_t stack;    /* bytes of local memory per thread; 0 = never grown (context/local_memory.c) */
    uint64_t limits[CU_LIMIT_MAX]; /* as the program set them; 0 = the default (context/limits.c) */
    uint32_t peers;                /* one bit for each device whose memory the context may use */
    bool has_heap;                 /* a kernel has used the heap of device code */
    uint32_t leader;               /* number of the first queue that was opened; 0 = there is none */
    struct channel channel[TIMELINE_CHANNELS];
    struct stream_waits *waits; /* for values in memory (queue/stream_waits.h); NULL = there was none */
    CUevent events;             /* recorded events whose time is not known yet */
    struct CUstream_st *streams;
};

bool context_is_alive(CUcontext context);
/* Adds a context like `wanted` to the list, with an id of its own. NULL when out of memory. */
CUcontext context_add(const struct CUctx_st *wanted);
/* Takes a context off the list. */
void context_remove(CUcontext context);

/* The context on top of the thread's stack. CUDA_ERROR_INVALID_CONTEXT when the stack is empty,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED after the context was destroyed. */
CUresult context_top(CUcontext *out);
/* The context that new objects belong to: context_top, or its owner when a green context is on top. */
CUresult context_current(CUcontext *out);

bool context_stack_is_full(void);
CUresult context_push(CUcontext context); /* CUDA_ERROR_INVALID_VALUE when the stack is full */
void context_pop_if_top(CUcontext context);

#endif
