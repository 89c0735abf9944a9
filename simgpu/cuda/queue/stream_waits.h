/* What streams do besides kernels: they wait for a value in memory (cuStreamWaitValue32), write values
 * (cuStreamWriteValue32), and call functions of the program's (cuLaunchHostFunc). All
 * streams of a context share one hardware channel here, as with CUDA_DEVICE_MAX_CONNECTIONS=1: a wait holds back all
 * work that is launched later in the context. */
#ifndef SIMGPU_CUDA_QUEUE_STREAM_WAITS_H
#define SIMGPU_CUDA_QUEUE_STREAM_WAITS_H

#include <cuda.h>
#include <stdint.h>

#include "cuda/context/context.h"

/* Sleeps, without the lock, until no work of the current context is held back. For driver functions that block while a
 * wait is closed (measured on an H200, driver 580). */
void stream_waits_await_open(void);
/* Sleeps, without the lock, while as many launches are held back as a hardware channel takes. */
void stream_waits_await_room(CUcontext context);
/* Holds back all later work of the context until the word is at least `value`, by a cyclic comparison. */
CUresult stream_waits_add(CUcontext context, const uint32_t *word, uint32_t value);
/* Stores `value` when the card has done all work and passed all waits that are in the context so far. */
CUresult stream_waits_write(CUcontext context, uint32_t *word, uint32_t value);
/* A function of the program's, called by a thread of the driver's: one of the two. */
struct host_call {
    CUhostFn function; /* NULL: `callback` is called */
    CUstreamCallback callback;
    CUstream stream; /* for the callback */
    void *data;
};
/* Makes the call when the card has done all work and passed all waits that are in the context so far. Later work waits
 * until it returns. The end of the context waits for a call that has begun, and drops the others. */
CUresult stream_waits_call(CUcontext context, struct host_call call);
/* Does the writes whose turn has come, of the context with this queue: after a program has waited for them. */
void stream_waits_do_writes(struct card_queue queue);
/* A launch goes to the context's channel. */
void stream_waits_count_launch(CUcontext context);
/* The context ends, and its waits with it. */
void stream_waits_free(CUcontext context);

#endif
