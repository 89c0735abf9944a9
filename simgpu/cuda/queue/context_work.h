/* The work of streams on their cards, and the times when events passed. */
#ifndef SIMGPU_CUDA_QUEUE_CONTEXT_WORK_H
#define SIMGPU_CUDA_QUEUE_CONTEXT_WORK_H

#include <cuda.h>
#include <stdint.h>

#include "cuda/context/context.h"

/* Adds `ns` of work. CUDA_ERROR_OUT_OF_MEMORY when the card has no room for a queue. */
CUresult stream_add_work(CUstream stream, uint64_t ns);
/* Adds the kernel of one rank of a collective. Sleeps, without the lock, while the stream's channel, or the card, has
 * as many as it takes. */
CUresult stream_add_collective(CUstream stream, struct collective_key key, uint64_t ns);
/* Discards the context's work; all its events have passed then. */
void context_end_work(CUcontext context);

/* Records an event behind the stream's work. */
CUresult event_mark(CUevent event, CUstream stream);
/* Takes over what another process recorded last in an event that this process shares with it. */
void event_refresh(CUevent event);
/* Makes an event one that was never recorded. */
void event_reset(CUevent event);
/* CLOCK_MONOTONIC ns when the event passed; 0 = not yet. */
uint64_t event_passed(CUevent event);

#endif
