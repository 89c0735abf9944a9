/* Contexts, and each thread's stack of current contexts. */
#ifndef SIMGPU_CUDA_CONTEXT_CONTEXT_H
#define SIMGPU_CUDA_CONTEXT_CONTEXT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "ledger/card_time.h"

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
    struct card_queue queue;       /* work on the card; not open before the first work */
    uint64_t submitted;            /* position behind all work of the context */
    uint64_t runs_read;            /* runs of the queue when the times of its events were last read */
    struct stream_waits *waits;    /* for values in memory (queue/stream_waits.h); NULL = there was none */
    CUevent events;                /* recorded events whose time is not known yet */
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
