#include "compute/turn_events.h"

#include "driver/capture.h"
#include "driver/function_table.h"

static const void *this_thread(void) {
    static __thread char here;
    return &here;
}

static bool is_per_thread(CUstream stream) { return stream == CU_STREAM_PER_THREAD; }

bool marks_is_capturing(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return REAL(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static struct span *span_of(struct marks *marks, CUcontext context) {
    for (int i = 0; i < MARKS_CONTEXTS; i++)
        if (marks->spans[i].context == context || !marks->spans[i].context) return &marks->spans[i];
    return NULL;
}

static struct mark *mark_of(struct span *span, CUstream stream) {
    const void *thread = is_per_thread(stream) ? this_thread() : NULL;
    for (unsigned i = 0; i < span->count; i++)
        if (span->marks[i].stream == stream && span->marks[i].thread == thread) return &span->marks[i];
    if (span->count == MARKS_STREAMS) return NULL;
    struct mark *mark = &span->marks[span->count++];
    *mark = (struct mark){.stream = stream, .thread = thread, .event = mark->event, .is_made = mark->is_made};
    return mark;
}

bool marks_find(struct marks *marks, CUcontext context, CUstream stream, struct place *place) {
    struct span *span = span_of(marks, context);
    *place = (struct place){0};
    if (!span) return false;
    bool is_first = span->count == 0;
    struct mark *mark = mark_of(span, stream);
    if (!mark) return false;
    span->context = context;
    *place = (struct place){.span = span, .mark = mark, .is_first = is_first, .is_maker = !mark->is_made};
    mark->is_made = true;
    return true;
}

static bool is_due(const struct mark *mark) { return __atomic_load_n(&mark->is_due, __ATOMIC_RELAXED); }

static void set_due(struct mark *mark, bool due) { __atomic_store_n(&mark->is_due, due, __ATOMIC_RELAXED); }

static bool is_in(const struct mark *mark, CUstream stream) { return !stream || mark->stream == stream; }

bool marks_are_due(const struct marks *marks, CUstream stream) {
    for (int i = 0; i < MARKS_CONTEXTS; i++)
        for (unsigned j = 0; j < marks->spans[i].count; j++)
            if (is_in(&marks->spans[i].marks[j], stream) && is_due(&marks->spans[i].marks[j])) return true;
    return false;
}

static bool record(CUevent *event, CUstream stream) {
    CUresult result = *event ? CUDA_SUCCESS : REAL(cuEventCreate)(event, CU_EVENT_DEFAULT);
    return result == CUDA_SUCCESS && REAL(cuEventRecord)(*event, stream) == CUDA_SUCCESS;
}

static void before_sample(struct span *span, CUstream stream, bool is_first) {
    span->is_prompt = REAL(cuStreamQuery)(stream) == CUDA_SUCCESS;
    span->is_from = !is_first && record(&span->from, stream);
}

/* The end's event is made here, in the launch's context: at the turn's end another may be current. */
static void before(const struct place *place) {
    CUevent made = NULL;
    if (place->is_sampled) before_sample(place->span, place->mark->stream, place->is_first);
    if (place->is_first) record(&place->span->begin, place->mark->stream);
    if (place->is_maker && REAL(cuEventCreate)(&made, CU_EVENT_DEFAULT) == CUDA_SUCCESS)
        __atomic_store_n(&place->mark->event, made, __ATOMIC_RELEASE);
}

void marks_before(const struct place *place) {
    if (place->span && (place->is_first || place->is_maker || place->is_sampled)) CAPTURE_ALLOWS(before(place));
}

/* Another thread may be about to make the event. */
static bool end(struct mark *mark) {
    CUevent event = __atomic_load_n(&mark->event, __ATOMIC_ACQUIRE);
    bool is_recorded = event && REAL(cuEventRecord)(event, mark->stream) == CUDA_SUCCESS;
    __atomic_store_n(&mark->is_recorded, is_recorded, __ATOMIC_RELAXED);
    return is_recorded;
}

static void probe(const struct place *place) {
    if (record(&place->span->probe, place->mark->stream))
        __atomic_store_n(place->probe, place->span->probe, __ATOMIC_RELEASE);
}

/* What another thread's default stream is, that thread alone can say. */
static bool is_ended_at_once(const struct place *place) {
    return place->is_eager || is_per_thread(place->mark->stream);
}

static void after(const struct place *place) {
    bool is_marked = false;
    if (place->is_sampled) is_marked = place->span->is_sampled = record(&place->span->sample, place->mark->stream);
    if (place->probe) probe(place);
    if (is_ended_at_once(place)) is_marked |= end(place->mark);
    if (!is_marked && !is_per_thread(place->mark->stream)) set_due(place->mark, true);
}

void marks_after(const struct place *place) {
    if (!place->span) return;
    if (place->is_sampled || place->probe || is_ended_at_once(place))
        CAPTURE_ALLOWS(after(place));
    else
        set_due(place->mark, true);
}

/* A stream that captures since its last launch has been drained into: it is left alone. */
static bool end_of(struct span *span, CUstream stream) {
    bool any = false;
    REAL(cuCtxPushCurrent_v2)(span->context);
    for (unsigned i = 0; i < span->count; i++) {
        struct mark *mark = &span->marks[i];
        if (!is_due(mark) || !is_in(mark, stream) || marks_is_capturing(mark->stream)) continue;
        end(mark);
        set_due(mark, false);
        any = true;
    }
    CUcontext ours;
    REAL(cuCtxPopCurrent_v2)(&ours);
    return any;
}

bool marks_end(struct marks *marks, CUstream stream) {
    bool any = false;
    for (int i = 0; i < MARKS_CONTEXTS; i++)
        if (marks->spans[i].count) CAPTURE_ALLOWS(any |= end_of(&marks->spans[i], stream));
    return any;
}

CUevent marks_probe(const struct marks *marks) { return __atomic_load_n(&marks->probe, __ATOMIC_ACQUIRE); }

void marks_drop_probe(struct marks *marks) { __atomic_store_n(&marks->probe, NULL, __ATOMIC_RELAXED); }

void marks_reset(struct marks *marks) {
    marks_drop_probe(marks);
    for (int i = 0; i < MARKS_CONTEXTS; i++) {
        marks->spans[i].count = 0;
        marks->spans[i].is_sampled = false;
    }
}
