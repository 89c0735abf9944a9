/* The queues of each context on its card. */
#ifndef SIMGPU_CUDA_QUEUE_CONTEXT_QUEUE_H
#define SIMGPU_CUDA_QUEUE_CONTEXT_QUEUE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/context/context.h"
#include "ledger/card_time.h"

/* Opens the channel's queue when it is not open yet; false when the card has no room for it. */
bool channel_open(CUcontext context, struct channel *channel);

bool queue_passed(struct card_queue queue, uint64_t position);
/* Sleeps, without the lock, until the position has passed. */
void queue_await(struct card_queue queue, uint64_t position);

#endif
