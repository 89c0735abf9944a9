/* What the events say once the card has passed them. */
#include "common/arithmetic.h"
#include "compute/turn_events.h"
#include "driver/capture.h"
#include "driver/function_table.h"

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
