/* Which work of other streams holds a stream back. */
#ifndef SIMGPU_CUDA_QUEUE_STREAM_ORDER_H
#define SIMGPU_CUDA_QUEUE_STREAM_ORDER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/context/context.h"

/* Precedes each addition to a stream: the stream waits for what the legacy default stream makes it wait for. Work of
 * the legacy default stream waits for all streams that were not created with CU_STREAM_NON_BLOCKING, and their later
 * work waits for it. False when the card has no room for a queue. */
bool stream_begin(CUstream stream);
/* The stream's work ends at that position now. */
void stream_moved(CUstream stream, uint64_t position);
/* The channel has work up to that position. */
void channel_reached(struct channel *channel, uint64_t position);

/* The stream's later work waits until the position has passed in another queue of the card. Sleeps, without the lock,
 * while the channel has as many barriers as it takes, as for a launch into a full channel. */
void stream_add_barrier(CUstream stream, struct card_queue other, uint64_t position);

#endif
