#include "compute/queue/turn_events.h"

#include "common/arithmetic.h"
#include "common/clock.h"
#include "compute/queue/queue_page.h"
#include "driver/capture.h"
#include "driver/function_table.h"

/* The longest time of the host's that is taken out of a turn. The host may be interrupted when the card has begun. */
#define FIRST_LAUNCH_MAX (50 * NS_PER_US)

static const void *this_thread(void) {
    static __thread char here;
    return &here;
}

static bool is_per_thread(CUstream stream) { return stream == CU_STREAM_PER_THREAD; }

bool turn_events_is_capturing(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return REAL(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static struct context_events *context_events_of(struct turn_events *events, CUcontext context) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->contexts[i].context == context || !events->contexts[i].context) return &events->contexts[i];
    return NULL;
}

static struct stream_event *end_of(struct context_events *context_events, CUstream stream) {
    const void *thread = is_per_thread(stream) ? this_thread() : NULL;
    for (unsigned i = 0; i < context_events->count; i++)
        if (context_events->events[i].stream == stream && context_events->events[i].thread == thread)
            return &context_events->events[i];
    if (context_events->count == TURN_EVENTS_STREAMS) return NULL;
    struct stream_event *end = &context_events->events[context_events->count++];
    *end = (struct stream_event){.stream = stream, .thread = thread, .event = end->event, .has_event = end->has_event};
    return end;
}

bool turn_events_find_slot(struct turn_events *events, CUcontext context, CUstream stream, struct launch_slot *slot) {
    struct context_events *context_events = context_events_of(events, context);
    *slot = (struct launch_slot){0};
    if (!context_events) return false;
    bool is_first = context_events->count == 0;
    struct stream_event *end = end_of(context_events, stream);
    if (!end) return false;
    context_events->context = context;
    *slot = (struct launch_slot){.context = context,
                                 .context_events = context_events,
                                 .end = end,
                                 .is_first = is_first,
                                 .creates_event = !end->has_event};
    end->has_event = true;
    return true;
}

static bool is_unrecorded(const struct stream_event *end) {
    return __atomic_load_n(&end->is_unrecorded, __ATOMIC_RELAXED);
}

static void set_unrecorded(struct stream_event *end, bool value) {
    __atomic_store_n(&end->is_unrecorded, value, __ATOMIC_RELAXED);
}

static bool is_selected(const struct stream_event *end, CUstream stream) { return !stream || end->stream == stream; }

bool turn_events_has_unrecorded_end(const struct turn_events *events, CUstream stream) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        for (unsigned j = 0; j < events->contexts[i].count; j++)
            if (is_selected(&events->contexts[i].events[j], stream) && is_unrecorded(&events->contexts[i].events[j]))
                return true;
    return false;
}

void turn_events_drop_end(struct turn_events *events, CUstream stream) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        for (unsigned j = 0; j < events->contexts[i].count; j++)
            if (is_selected(&events->contexts[i].events[j], stream)) {
                set_unrecorded(&events->contexts[i].events[j], false);
                events->contexts[i].events[j].segment = 0;
            }
}

/* `place` is atomic: another thread may read a sample's events (queue_sample_read) while this one creates them. */
static bool record(CUevent *place, CUstream stream) {
    CUevent event = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!event) {
        if (REAL(cuEventCreate)(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
        __atomic_store_n(place, event, __ATOMIC_RELEASE);
    }
    return REAL(cuEventRecord)(event, stream) == CUDA_SUCCESS;
}

static void record_sample_begin(struct context_events *context_events, CUstream stream, bool is_first) {
    context_events->is_stream_idle = REAL(cuStreamQuery)(stream) == CUDA_SUCCESS;
    context_events->has_sample_begin = !is_first && record(&context_events->sample_begin, stream);
}

/* An idle card passes `begin` at once, and then waits for the host to launch. */
static void record_begin(struct context_events *context_events, CUstream stream) {
    bool is_idle = REAL(cuStreamQuery)(stream) == CUDA_SUCCESS;
    record(&context_events->begin, stream);
    context_events->first_ns = 0;
    context_events->first_at = is_idle ? clock_now() : 0;
}

/* The event is created here, where the context of the launch is current; at the turn's end another one may be. */
static void record_before(const struct launch_slot *slot) {
    CUevent event = NULL;
    if (slot->sample_end_before) record(slot->sample_end_before, slot->end->stream);
    if (slot->sample_idle)
        __atomic_store_n(slot->sample_idle, REAL(cuStreamQuery)(slot->end->stream) == CUDA_SUCCESS, __ATOMIC_RELAXED);
    if (slot->waits) queue_page_wait(slot->context, slot->end->stream, slot->gate, slot->segment);
    if (slot->marks) queue_page_mark(slot->context, slot->end->stream, slot->gate, slot->segment);
    if (slot->sample_begin) record(slot->sample_begin, slot->end->stream);
    if (slot->is_sampled) record_sample_begin(slot->context_events, slot->end->stream, slot->is_first);
    if (slot->is_first) record_begin(slot->context_events, slot->end->stream);
    if (slot->creates_event && REAL(cuEventCreate)(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS)
        __atomic_store_n(&slot->end->event, event, __ATOMIC_RELEASE);
}

void turn_events_before_launch(const struct launch_slot *slot) {
    if (slot->context_events)
        stream_waits_take(&slot->context_events->waits, slot->context, slot->end->stream, !slot->is_first);
    if (slot->context_events &&
        (slot->is_first || slot->creates_event || slot->is_sampled || slot->waits || slot->marks || slot->sample_begin))
        CAPTURE_ALLOWS(record_before(slot));
}

/* `event` is NULL while another thread is about to create it. */
static bool record_end(struct stream_event *end) {
    CUevent event = __atomic_load_n(&end->event, __ATOMIC_ACQUIRE);
    bool is_recorded = event && REAL(cuEventRecord)(event, end->stream) == CUDA_SUCCESS;
    __atomic_store_n(&end->is_recorded, is_recorded, __ATOMIC_RELAXED);
    return is_recorded;
}

static void record_probe(const struct launch_slot *slot) {
    if (record(&slot->context_events->probe, slot->end->stream))
        __atomic_store_n(slot->probe_out, slot->context_events->probe, __ATOMIC_RELEASE);
}

/* CU_STREAM_PER_THREAD names another stream in each thread, so only the launching thread can record its end. */
static bool is_end_recorded_at_once(const struct launch_slot *slot) {
    return slot->records_end_at_once || is_per_thread(slot->end->stream);
}

static void record_after(const struct launch_slot *slot) {
    bool is_end_recorded = false;
    if (slot->is_sampled)
        is_end_recorded = slot->context_events->is_sampled =
            record(&slot->context_events->sample_end, slot->end->stream);
    if (slot->sample_end_after) record(slot->sample_end_after, slot->end->stream);
    if (slot->probe_out) record_probe(slot);
    if (is_end_recorded_at_once(slot)) is_end_recorded |= record_end(slot->end);
    if (!is_end_recorded && !is_per_thread(slot->end->stream)) set_unrecorded(slot->end, true);
}

static void note_first_launch(struct context_events *context_events) {
    uint64_t passed = context_events->first_at ? clock_now() - context_events->first_at : 0;
    context_events->first_ns = min_u64(passed, FIRST_LAUNCH_MAX);
}

void turn_events_after_launch(const struct launch_slot *slot) {
    if (!slot->context_events) return;
    if (slot->is_first) note_first_launch(slot->context_events);
    if (slot->is_sampled || slot->probe_out || slot->sample_end_after || is_end_recorded_at_once(slot))
        CAPTURE_ALLOWS(record_after(slot));
    else
        set_unrecorded(slot->end, true);
}

/* A stream that captures by now is skipped: an event would become part of its graph. */
static bool record_ends_of_context(struct context_events *context_events, CUstream stream) {
    bool has_recorded = false;
    REAL(cuCtxPushCurrent_v2)(context_events->context);
    for (unsigned i = 0; i < context_events->count; i++) {
        struct stream_event *end = &context_events->events[i];
        if (!is_unrecorded(end) || !is_selected(end, stream) || turn_events_is_capturing(end->stream)) continue;
        stream_waits_take(&context_events->waits, context_events->context, end->stream, true);
        record_end(end);
        set_unrecorded(end, false);
        has_recorded = true;
    }
    CUcontext popped;
    REAL(cuCtxPopCurrent_v2)(&popped);
    return has_recorded;
}

static bool is_idle(CUstream stream) {
    return turn_events_is_capturing(stream) || REAL(cuStreamQuery)(stream) != CUDA_ERROR_NOT_READY;
}

static bool are_unrecorded_idle(const struct context_events *context_events) {
    bool are_idle = true;
    REAL(cuCtxPushCurrent_v2)(context_events->context);
    for (unsigned i = 0; are_idle && i < context_events->count; i++)
        are_idle = !is_unrecorded(&context_events->events[i]) || is_idle(context_events->events[i].stream);
    CUcontext popped;
    REAL(cuCtxPopCurrent_v2)(&popped);
    return are_idle;
}

bool turn_events_unrecorded_are_idle(const struct turn_events *events) {
    bool are_idle = true;
    for (int i = 0; are_idle && i < TURN_EVENTS_CONTEXTS; i++)
        if (events->contexts[i].count) CAPTURE_ALLOWS(are_idle = are_unrecorded_idle(&events->contexts[i]));
    return are_idle;
}

bool turn_events_record_ends(struct turn_events *events, CUstream stream) {
    bool has_recorded = false;
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->contexts[i].count)
            CAPTURE_ALLOWS(has_recorded |= record_ends_of_context(&events->contexts[i], stream));
    return has_recorded;
}

CUevent turn_events_probe(const struct turn_events *events) {
    return __atomic_load_n(&events->probe, __ATOMIC_ACQUIRE);
}

void turn_events_drop_probe(struct turn_events *events) { __atomic_store_n(&events->probe, NULL, __ATOMIC_RELAXED); }

void turn_events_note_mixed(struct turn_events *events) { events->is_mixed = true; }

void turn_events_end_sample(struct turn_events *events) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++) events->contexts[i].is_sampled = false;
}

void turn_events_reset(struct turn_events *events) {
    turn_events_drop_probe(events);
    events->is_mixed = false;
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++) {
        events->contexts[i].count = 0;
        events->contexts[i].is_sampled = false;
        stream_waits_reset(&events->contexts[i].waits);
    }
}

static bool is_done(CUevent event) {
    CUresult result = CUDA_SUCCESS;
    CAPTURE_ALLOWS(result = REAL(cuEventQuery)(event));
    return result != CUDA_ERROR_NOT_READY;
}

static bool is_context_done(const struct context_events *context_events, bool with_sample) {
    for (unsigned i = 0; i < context_events->count; i++)
        if (context_events->events[i].is_recorded && !is_done(context_events->events[i].event)) return false;
    return !with_sample || !context_events->is_sampled || is_done(context_events->sample_end);
}

bool turn_events_is_probe_passed(CUevent probe) { return is_done(probe); }

bool turn_events_ends_are_done(const struct turn_events *events, bool with_sample) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->contexts[i].count && !is_context_done(&events->contexts[i], with_sample)) return false;
    return true;
}

bool turn_events_are_done(const struct turn_events *events) { return turn_events_ends_are_done(events, true); }

static uint64_t between(CUevent begin, CUevent end) { return stream_waits_between(begin, end); }

static uint64_t length_of_context(const struct context_events *context_events, bool with_sample) {
    bool counts_sample = with_sample && context_events->is_sampled;
    uint64_t length = counts_sample ? between(context_events->begin, context_events->sample_end) : 0;
    for (unsigned i = 0; i < context_events->count; i++)
        if (context_events->events[i].is_recorded)
            length = max_u64(length, between(context_events->begin, context_events->events[i].event));
    return max_u64(length / 2, saturating_sub(length, context_events->first_ns));
}

uint64_t turn_events_ends_ns(const struct turn_events *events, bool with_sample) {
    uint64_t length = 0;
    for (int i = 0; i < TURN_EVENTS_CONTEXTS && !events->is_mixed; i++)
        if (events->contexts[i].count) length += length_of_context(&events->contexts[i], with_sample);
    return length;
}

uint64_t turn_events_measured_ns(const struct turn_events *events) { return turn_events_ends_ns(events, true); }

static uint64_t waited_in(const struct context_events *context_events) {
    const struct stream_event *end = &context_events->events[0];
    bool is_measured = context_events->count == 1 && end->is_recorded;
    return is_measured ? stream_waits_ns(&context_events->waits, context_events->begin, end->event) : 0;
}

uint64_t turn_events_waited_ns(const struct turn_events *events) {
    uint64_t waited = 0;
    for (int i = 0; i < TURN_EVENTS_CONTEXTS && !events->is_mixed; i++) waited += waited_in(&events->contexts[i]);
    return waited;
}

uint64_t turn_events_sampled_ns(const struct turn_events *events, bool *is_stream_idle) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS && !events->is_mixed; i++) {
        const struct context_events *context_events = &events->contexts[i];
        if (!context_events->count || !context_events->is_sampled) continue;
        *is_stream_idle = context_events->is_stream_idle;
        return between(context_events->has_sample_begin ? context_events->sample_begin : context_events->begin,
                       context_events->sample_end);
    }
    return 0;
}

static void destroy(CUevent event) {
    if (event) CAPTURE_ALLOWS(REAL(cuEventDestroy_v2)(event));
}

void turn_events_destroy(const struct turn_events *events) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++) {
        destroy(events->contexts[i].begin);
        destroy(events->contexts[i].sample_begin);
        destroy(events->contexts[i].sample_end);
        destroy(events->contexts[i].probe);
        destroy(events->contexts[i].segment_begin);
        destroy(events->contexts[i].segment_end);
        stream_waits_destroy(&events->contexts[i].waits);
        for (int j = 0; j < TURN_EVENTS_STREAMS; j++) destroy(events->contexts[i].events[j].event);
    }
}

bool turn_events_have_begun(const struct turn_events *events) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->contexts[i].count && events->contexts[i].begin && is_done(events->contexts[i].begin)) return true;
    return false;
}
