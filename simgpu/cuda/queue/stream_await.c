#include "cuda/queue/stream_await.h"

#include <string.h>

#include "cuda/queue/context_queue.h"
#include "cuda/queue/stream_order.h"
#include "cuda/queue/stream_state.h"
#include "cuda/queue/stream_waits.h"

/* An event of another card opens no barrier of this one, so the driver's thread looks when it passes. */
CUresult stream_await_event(CUstream stream, CUevent event) {
    if (queue_passed(event->queue, event->position)) return CUDA_SUCCESS;
    if (!stream_begin(stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (event->queue.card != stream->channel->queue.card)
        return stream_waits_add_event(stream, event->queue, event->position);
    stream_add_barrier(stream, event->queue, event->position);
    return CUDA_SUCCESS;
}

bool stream_has_passed(CUstream stream) {
    bool has_passed = queue_passed(stream->channel->queue, stream->position);
    const struct channel *channels = stream->context->channel;
    for (unsigned i = 1; has_passed && stream_is_legacy(stream) && i < TIMELINE_CHANNELS; i++)
        has_passed = queue_passed(channels[i].queue, channels[i].blocking);
    return has_passed;
}

/* The stream and its context may end meanwhile, so what is awaited is copied first. */
void stream_await(CUstream stream) {
    struct card_queue queues[TIMELINE_CHANNELS] = {{0}};
    uint64_t positions[TIMELINE_CHANNELS] = {0};
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++) {
        const struct channel *channel = &stream->context->channel[i];
        queues[i] = channel->queue;
        if (channel == stream->channel)
            positions[i] = stream->position;
        else if (stream_is_legacy(stream))
            positions[i] = channel->blocking;
    }
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++)
        if (positions[i] > 0) queue_await(queues[i], positions[i]);
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++) stream_waits_do_writes(queues[i]);
}

/* The context may end meanwhile, so its channels are copied first. */
void context_await(CUcontext context) {
    struct channel channels[TIMELINE_CHANNELS];
    memcpy(channels, context->channel, sizeof channels);
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++) queue_await(channels[i].queue, channels[i].submitted);
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++) stream_waits_do_writes(channels[i].queue);
}
