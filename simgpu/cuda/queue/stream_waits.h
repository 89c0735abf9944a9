/* What streams do besides kernels: they wait for a value in memory (cuStreamWaitValue32) or for an event of another
 * card, write values (cuStreamWriteValue32), and call functions of the program's (cuLaunchHostFunc). A wait holds back
 * all later work of the stream's hardware channel. */
#ifndef SIMGPU_CUDA_QUEUE_STREAM_WAITS_H
#define SIMGPU_CUDA_QUEUE_STREAM_WAITS_H

#include <cuda.h>
#include <stdint.h>

#include "cuda/context/context.h"

/* Sleeps, without the lock, until no work of the current context waits for a value or a function. For driver functions
 * that block while a wait is closed (measured on an H200, driver 580). */
void stream_waits_await_open(void);
/* Sleeps, without the lock, while as many launches are held back as a hardware channel takes. */
void stream_waits_await_room(CUcontext context, const struct channel *channel);
/* Holds back all later work of the stream until the word is at least `value`, by a cyclic comparison. */
CUresult stream_waits_add(CUstream stream, const uint32_t *word, uint32_t value);
/* The same for a kernel that spins until then: it blocks no function of the driver's (not measured). When it has spun
 * for `timeout` ns it gives up and writes value + 1 into the word; 0 = never. */
CUresult stream_waits_add_spin(CUstream stream, uint32_t *word, uint32_t value, uint64_t timeout);
/* Holds back all later work of the stream until the event has passed that was recorded there. */
CUresult stream_waits_add_event(CUstream stream, struct card_queue queue, uint64_t position);
/* Stores `value` when the card has done all work and passed all waits that are in the stream so far. */
CUresult stream_waits_write(CUstream stream, uint32_t *word, uint32_t value);
/* A function of the program's, called by a thread of the driver's: one of the two. */
struct host_call {
    CUhostFn function; /* NULL: `callback` is called */
    CUstreamCallback callback;
    CUstream stream; /* for the callback */
    void *data;
};
/* Makes the call when the card has done all work and passed all waits that are in the stream so far. Its later work
 * waits until it returns. One thread makes the calls of all streams of a context. The end of the context waits for a
 * call that has begun, and drops the others. */
CUresult stream_waits_call(CUstream stream, struct host_call call);
/* Does the writes whose turn has come, of the channel with this queue: after a program has waited for them. */
void stream_waits_do_writes(struct card_queue queue);
/* A launch goes to the channel. */
void stream_waits_count_launch(CUcontext context, const struct channel *channel);
/* The context ends, and its waits with it. */
void stream_waits_free(CUcontext context);

#endif
