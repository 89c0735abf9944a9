/* How streams wait for events, and programs for streams. */
#ifndef SIMGPU_CUDA_QUEUE_STREAM_AWAIT_H
#define SIMGPU_CUDA_QUEUE_STREAM_AWAIT_H

#include <cuda.h>
#include <stdbool.h>

#include "cuda/context/context.h"

/* The stream's later work waits for the event, which was recorded. */
CUresult stream_await_event(CUstream stream, CUevent event);
/* Whether the stream's work has passed; of the legacy default stream, the work that it waits for too. */
bool stream_has_passed(CUstream stream);
/* Sleeps, without the lock, until that is so. */
void stream_await(CUstream stream);
/* Sleeps, without the lock, until all work that the context has so far is done. */
void context_await(CUcontext context);

#endif
