/* What the marks say once the card has passed them. */
#include "common/arithmetic.h"
#include "compute/turn_events.h"
#include "driver/capture.h"
#include "driver/function_table.h"

static bool is_done(CUevent event) {
    CUresult result = CUDA_SUCCESS;
    CAPTURE_ALLOWS(result = REAL(cuEventQuery)(event));
    return result != CUDA_ERROR_NOT_READY;
}

static bool is_span_done(const struct span *span) {
    for (unsigned i = 0; i < span->count; i++)
        if (span->marks[i].is_recorded && !is_done(span->marks[i].event)) return false;
    return !span->is_sampled || is_done(span->sample);
}

bool marks_has_passed(CUevent probe) { return is_done(probe); }

bool marks_are_done(const struct marks *marks) {
    for (int i = 0; i < MARKS_CONTEXTS; i++)
        if (marks->spans[i].count && !is_span_done(&marks->spans[i])) return false;
    return true;
}

static uint64_t between(CUevent begin, CUevent end) {
    float ms = 0;
    CAPTURE_ALLOWS(if (REAL(cuEventElapsedTime)(&ms, begin, end) != CUDA_SUCCESS) ms = 0);
    return ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
}

static uint64_t length_of(const struct span *span) {
    uint64_t length = span->is_sampled ? between(span->begin, span->sample) : 0;
    for (unsigned i = 0; i < span->count; i++)
        if (span->marks[i].is_recorded) length = greater(length, between(span->begin, span->marks[i].event));
    return length;
}

uint64_t marks_measured(const struct marks *marks) {
    uint64_t length = 0;
    for (int i = 0; i < MARKS_CONTEXTS; i++)
        if (marks->spans[i].count) length += length_of(&marks->spans[i]);
    return length;
}

uint64_t marks_sampled(const struct marks *marks, bool *is_prompt) {
    for (int i = 0; i < MARKS_CONTEXTS; i++) {
        const struct span *span = &marks->spans[i];
        if (!span->count || !span->is_sampled) continue;
        *is_prompt = span->is_prompt;
        return between(span->is_from ? span->from : span->begin, span->sample);
    }
    return 0;
}

static void destroy(CUevent event) {
    if (event) CAPTURE_ALLOWS(REAL(cuEventDestroy_v2)(event));
}

void marks_destroy(const struct marks *marks) {
    for (int i = 0; i < MARKS_CONTEXTS; i++) {
        destroy(marks->spans[i].begin);
        destroy(marks->spans[i].from);
        destroy(marks->spans[i].sample);
        destroy(marks->spans[i].probe);
        for (int j = 0; j < MARKS_STREAMS; j++) destroy(marks->spans[i].marks[j].event);
    }
}

bool marks_have_begun(const struct marks *marks) {
    for (int i = 0; i < MARKS_CONTEXTS; i++)
        if (marks->spans[i].count && marks->spans[i].begin && is_done(marks->spans[i].begin)) return true;
    return false;
}
