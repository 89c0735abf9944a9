/* The work of contexts on their cards, and the times when events passed. */
#ifndef SIMGPU_CUDA_QUEUE_CONTEXT_WORK_H
#define SIMGPU_CUDA_QUEUE_CONTEXT_WORK_H

#include <cuda.h>
#include <stdint.h>

#include "cuda/context/context.h"

/* Adds `ns` of work and returns its position. CUDA_ERROR_OUT_OF_MEMORY when the card has no room for a queue. */
CUresult context_add_work(CUcontext context, uint64_t ns, uint64_t *position);
/* Discards the context's work; all its events have passed then. */
void context_end_work(CUcontext context);

/* Records an event behind the position `after`. */
CUresult event_mark(CUevent event, CUcontext context, uint64_t after);
/* Takes over what another process recorded last in an event that this process shares with it. */
void event_refresh(CUevent event);
/* Makes an event one that was never recorded. */
void event_reset(CUevent event);
/* CLOCK_MONOTONIC ns when the event passed; 0 = not yet. */
uint64_t event_passed(CUevent event);

#endif
