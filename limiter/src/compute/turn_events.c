#include "compute/turn_events.h"

#include "common/arithmetic.h"
#include "driver/capture.h"
#include "driver/function_table.h"

static const void *this_thread(void) {
    static __thread char here;
    return &here;
}

static bool is_per_thread(CUstream stream) { return stream == CU_STREAM_PER_THREAD; }

bool turn_events_is_capturing(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return REAL(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static struct context_events *span_of(struct turn_events *events, CUcontext context) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->spans[i].context == context || !events->spans[i].context) return &events->spans[i];
    return NULL;
}

static struct stream_event *mark_of(struct context_events *span, CUstream stream) {
    const void *thread = is_per_thread(stream) ? this_thread() : NULL;
    for (unsigned i = 0; i < span->count; i++)
        if (span->events[i].stream == stream && span->events[i].thread == thread) return &span->events[i];
    if (span->count == TURN_EVENTS_STREAMS) return NULL;
    struct stream_event *mark = &span->events[span->count++];
    *mark = (struct stream_event){.stream = stream, .thread = thread, .event = mark->event, .is_made = mark->is_made};
    return mark;
}

bool turn_events_find_slot(struct turn_events *events, CUcontext context, CUstream stream, struct launch_slot *slot) {
    struct context_events *span = span_of(events, context);
    *slot = (struct launch_slot){0};
    if (!span) return false;
    bool is_first = span->count == 0;
    struct stream_event *mark = mark_of(span, stream);
    if (!mark) return false;
    span->context = context;
    *slot = (struct launch_slot){.span = span, .mark = mark, .is_first = is_first, .is_maker = !mark->is_made};
    mark->is_made = true;
    return true;
}

static bool is_due(const struct stream_event *mark) { return __atomic_load_n(&mark->is_due, __ATOMIC_RELAXED); }

static void set_due(struct stream_event *mark, bool due) { __atomic_store_n(&mark->is_due, due, __ATOMIC_RELAXED); }

static bool is_in(const struct stream_event *mark, CUstream stream) { return !stream || mark->stream == stream; }

bool turn_events_are_due(const struct turn_events *events, CUstream stream) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        for (unsigned j = 0; j < events->spans[i].count; j++)
            if (is_in(&events->spans[i].events[j], stream) && is_due(&events->spans[i].events[j])) return true;
    return false;
}

static bool record(CUevent *event, CUstream stream) {
    CUresult result = *event ? CUDA_SUCCESS : REAL(cuEventCreate)(event, CU_EVENT_DEFAULT);
    return result == CUDA_SUCCESS && REAL(cuEventRecord)(*event, stream) == CUDA_SUCCESS;
}

static void before_sample(struct context_events *span, CUstream stream, bool is_first) {
    span->is_prompt = REAL(cuStreamQuery)(stream) == CUDA_SUCCESS;
    span->is_from = !is_first && record(&span->from, stream);
}

/* The end's event is made here, in the launch's context: at the turn's end another may be current. */
static void before(const struct launch_slot *slot) {
    CUevent made = NULL;
    if (slot->is_sampled) before_sample(slot->span, slot->mark->stream, slot->is_first);
    if (slot->is_first) record(&slot->span->begin, slot->mark->stream);
    if (slot->is_maker && REAL(cuEventCreate)(&made, CU_EVENT_DEFAULT) == CUDA_SUCCESS)
        __atomic_store_n(&slot->mark->event, made, __ATOMIC_RELEASE);
}

void turn_events_before_launch(const struct launch_slot *slot) {
    if (slot->span && (slot->is_first || slot->is_maker || slot->is_sampled)) CAPTURE_ALLOWS(before(slot));
}

/* Another thread may be about to make the event. */
static bool end(struct stream_event *mark) {
    CUevent event = __atomic_load_n(&mark->event, __ATOMIC_ACQUIRE);
    bool is_recorded = event && REAL(cuEventRecord)(event, mark->stream) == CUDA_SUCCESS;
    __atomic_store_n(&mark->is_recorded, is_recorded, __ATOMIC_RELAXED);
    return is_recorded;
}

static void probe(const struct launch_slot *slot) {
    if (record(&slot->span->probe, slot->mark->stream))
        __atomic_store_n(slot->probe, slot->span->probe, __ATOMIC_RELEASE);
}

/* What another thread's default stream is, that thread alone can say. */
static bool is_ended_at_once(const struct launch_slot *slot) {
    return slot->is_eager || is_per_thread(slot->mark->stream);
}

static void after(const struct launch_slot *slot) {
    bool is_marked = false;
    if (slot->is_sampled) is_marked = slot->span->is_sampled = record(&slot->span->sample, slot->mark->stream);
    if (slot->probe) probe(slot);
    if (is_ended_at_once(slot)) is_marked |= end(slot->mark);
    if (!is_marked && !is_per_thread(slot->mark->stream)) set_due(slot->mark, true);
}

void turn_events_after_launch(const struct launch_slot *slot) {
    if (!slot->span) return;
    if (slot->is_sampled || slot->probe || is_ended_at_once(slot))
        CAPTURE_ALLOWS(after(slot));
    else
        set_due(slot->mark, true);
}

/* A stream that captures since its last launch has been drained into: it is left alone. */
static bool end_of(struct context_events *span, CUstream stream) {
    bool any = false;
    REAL(cuCtxPushCurrent_v2)(span->context);
    for (unsigned i = 0; i < span->count; i++) {
        struct stream_event *mark = &span->events[i];
        if (!is_due(mark) || !is_in(mark, stream) || turn_events_is_capturing(mark->stream)) continue;
        end(mark);
        set_due(mark, false);
        any = true;
    }
    CUcontext ours;
    REAL(cuCtxPopCurrent_v2)(&ours);
    return any;
}

bool turn_events_record_ends(struct turn_events *events, CUstream stream) {
    bool any = false;
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->spans[i].count) CAPTURE_ALLOWS(any |= end_of(&events->spans[i], stream));
    return any;
}

CUevent turn_events_probe(const struct turn_events *events) {
    return __atomic_load_n(&events->probe, __ATOMIC_ACQUIRE);
}

void turn_events_drop_probe(struct turn_events *events) { __atomic_store_n(&events->probe, NULL, __ATOMIC_RELAXED); }

void turn_events_reset(struct turn_events *events) {
    turn_events_drop_probe(events);
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++) {
        events->spans[i].count = 0;
        events->spans[i].is_sampled = false;
    }
}

static bool is_done(CUevent event) {
    CUresult result = CUDA_SUCCESS;
    CAPTURE_ALLOWS(result = REAL(cuEventQuery)(event));
    return result != CUDA_ERROR_NOT_READY;
}

static bool is_span_done(const struct context_events *span) {
    for (unsigned i = 0; i < span->count; i++)
        if (span->events[i].is_recorded && !is_done(span->events[i].event)) return false;
    return !span->is_sampled || is_done(span->sample);
}

bool turn_events_has_passed(CUevent probe) { return is_done(probe); }

bool turn_events_are_done(const struct turn_events *events) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->spans[i].count && !is_span_done(&events->spans[i])) return false;
    return true;
}

static uint64_t between(CUevent begin, CUevent end) {
    float ms = 0;
    CAPTURE_ALLOWS(if (REAL(cuEventElapsedTime)(&ms, begin, end) != CUDA_SUCCESS) ms = 0);
    return ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
}

static uint64_t length_of(const struct context_events *span) {
    uint64_t length = span->is_sampled ? between(span->begin, span->sample) : 0;
    for (unsigned i = 0; i < span->count; i++)
        if (span->events[i].is_recorded) length = max_u64(length, between(span->begin, span->events[i].event));
    return length;
}

uint64_t turn_events_measured_ns(const struct turn_events *events) {
    uint64_t length = 0;
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->spans[i].count) length += length_of(&events->spans[i]);
    return length;
}

uint64_t turn_events_sampled_ns(const struct turn_events *events, bool *is_prompt) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++) {
        const struct context_events *span = &events->spans[i];
        if (!span->count || !span->is_sampled) continue;
        *is_prompt = span->is_prompt;
        return between(span->is_from ? span->from : span->begin, span->sample);
    }
    return 0;
}

static void destroy(CUevent event) {
    if (event) CAPTURE_ALLOWS(REAL(cuEventDestroy_v2)(event));
}

void turn_events_destroy(const struct turn_events *events) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++) {
        destroy(events->spans[i].begin);
        destroy(events->spans[i].from);
        destroy(events->spans[i].sample);
        destroy(events->spans[i].probe);
        for (int j = 0; j < TURN_EVENTS_STREAMS; j++) destroy(events->spans[i].events[j].event);
    }
}

bool turn_events_have_begun(const struct turn_events *events) {
    for (int i = 0; i < TURN_EVENTS_CONTEXTS; i++)
        if (events->spans[i].count && events->spans[i].begin && is_done(events->spans[i].begin)) return true;
    return false;
}
