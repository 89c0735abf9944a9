#include "cuda/queue/context_work.h"

#include "cuda/driver/driver.h"
#include "cuda/queue/context_queue.h"
#include "cuda/queue/stream_order.h"
#include "cuda/queue/stream_state.h"
#include "cuda/queue/stream_waits.h"
#include "hardware/clock.h"
#include "hardware/timeline.h"
#include "ledger/shared_events.h"

#define FULL_POLL_NS UINT64_C(20000)

/* Takes the event off the list of events whose time is not known. */
static void unlink_event(CUevent event) {
    if (event->link) {
        *event->link = event->next;
        if (event->next) event->next->link = event->link;
    }
    event->link = NULL;
}

static void link_event(CUevent event, CUcontext context) {
    event->next = context->events;
    event->link = &context->events;
    if (event->next) event->next->link = &event->next;
    context->events = event;
}

uint64_t event_passed(CUevent event) {
    uint64_t earliest;
    if (event->at == 0 && event->queue.id != 0) event->at = card_queue_passed(event->queue, event->position, &earliest);
    if (event->at != 0) unlink_event(event);
    return event->at;
}

static void read_times(CUcontext context) {
    CUevent next;
    for (CUevent event = context->events; event; event = next) {
        next = event->next;
        event_passed(event);
    }
}

CUresult stream_add_work(CUstream stream, uint64_t ns) {
    uint64_t runs;
    struct channel *channel = stream->channel;
    stream_waits_await_room(stream->context, channel);
    if (!stream_begin(stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    stream_waits_count_launch(stream->context, channel);
    stream_moved(stream, card_queue_add(channel->queue, ns, stream->fills, &runs));
    if (runs - channel->runs_read >= TIMELINE_RUNS / 2) { /* before the queue drops the runs of some events */
        read_times(stream->context);
        channel->runs_read = runs;
    }
    return CUDA_SUCCESS;
}

CUresult stream_add_collective(CUstream stream, struct collective_key key, uint64_t ns) {
    uint64_t position;
    stream_waits_await_room(stream->context, stream->channel);
    if (!stream_begin(stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    stream_waits_count_launch(stream->context, stream->channel);
    while ((position = card_queue_collective(stream->channel->queue, key, ns)) == 0)
        driver_sleep_until(clock_now_ns() + FULL_POLL_NS);
    stream_moved(stream, position);
    return CUDA_SUCCESS;
}

void event_reset(CUevent event) {
    unlink_event(event);
    event->queue.id = 0;
    event->at = 0;
}

/* An event whose maker has freed it, or has ended, keeps the place that this process read last. */
void event_refresh(CUevent event) {
    struct recorded_at at;
    if (event->shared_id == 0 || !shared_event_read(event->shared_id, &at)) return;
    if (at.position == event->position && at.queue.id == event->queue.id && at.queue.card == event->queue.card) return;
    event_reset(event);
    event->queue = at.queue;
    event->position = at.position;
}

CUresult event_mark(CUevent event, CUstream stream) {
    if (!stream_begin(stream)) return CUDA_ERROR_OUT_OF_MEMORY;
    event_reset(event);
    event->queue = stream->channel->queue;
    event->position = card_queue_mark(event->queue, stream->position);
    channel_reached(stream->channel, event->position);
    link_event(event, stream->context);
    struct recorded_at at = {.queue = event->queue, .position = event->position};
    if (event->shared_id != 0) shared_event_record(event->shared_id, at);
    return CUDA_SUCCESS;
}

void context_end_work(CUcontext context) {
    for (unsigned i = 0; i < TIMELINE_CHANNELS; i++)
        if (context->channel[i].queue.id != 0) card_queue_close(context->channel[i].queue);
    read_times(context);
    stream_waits_free(context);
}
