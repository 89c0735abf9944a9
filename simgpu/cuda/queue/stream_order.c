#include "cuda/queue/stream_order.h"

#include "cuda/driver/driver.h"
#include "cuda/queue/context_queue.h"
#include "cuda/queue/stream_state.h"
#include "hardware/clock.h"

#define FULL_POLL_NS UINT64_C(20000)

void channel_reached(struct channel *channel, uint64_t position) {
    channel->submitted = position > channel->submitted ? position : channel->submitted;
}

static bool is_blocking(CUstream stream) {
    return !stream_is_legacy(stream) && (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

void stream_moved(CUstream stream, uint64_t position) {
    stream->position = position;
    channel_reached(stream->channel, position);
    if (is_blocking(stream)) stream->channel->blocking = position;
}

void stream_add_barrier(CUstream stream, struct card_queue other, uint64_t position) {
    uint64_t behind;
    struct card_queue queue = stream->channel->queue;
    while ((behind = card_queue_wait(queue, other, position)) == 0) driver_sleep_until(clock_now_ns() + FULL_POLL_NS);
    stream_moved(stream, behind);
}

static void join_blocking(CUstream legacy) {
    for (unsigned i = 1; i < TIMELINE_CHANNELS; i++) {
        struct channel *channel = &legacy->context->channel[i];
        uint64_t position = channel->blocking;
        if (position > channel->joined) stream_add_barrier(legacy, channel->queue, position);
        channel->joined = position > channel->joined ? position : channel->joined;
    }
}

static void join_legacy(CUstream stream) {
    const struct channel *legacy = &stream->context->channel[0];
    uint64_t position = legacy->submitted;
    if (position <= stream->channel->legacy) return;
    stream_add_barrier(stream, legacy->queue, position);
    stream->channel->legacy = position;
}

bool stream_begin(CUstream stream) {
    if (!channel_open(stream->context, stream->channel)) return false;
    if (stream_is_legacy(stream)) join_blocking(stream);
    if (is_blocking(stream)) join_legacy(stream);
    return true;
}
