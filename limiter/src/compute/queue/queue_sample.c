#include "compute/queue/queue_sample.h"

#include "compute/turn/turn.h"
#include "driver/capture.h"
#include "driver/function_table.h"

/* INTERVAL: one closed segment in INTERVAL is sampled on average. Segments are drawn at random, because a program that
 * queues INTERVAL segments in each of its periods would otherwise be sampled at one point of the period only.
 * LAUNCHES_MIN: a segment with fewer launches says little about how launches overlap, so one of them is sampled. */
enum { INTERVAL = 4, LAUNCHES_MIN = 4 };

/* How long the card may take to change to this tenant after a segment was opened. */
#define DELAY_MAX 1000000ULL

static bool is_in_same_stream(const struct queue_sample *sample, const struct queued_launch *launch) {
    return launch->context == sample->context && launch->stream == sample->stream;
}

static unsigned draw(struct queue_sample *sample, unsigned count) {
    sample->random = sample->random * 1664525U + 1013904223U; /* Numerical Recipes, section 7.1 */
    return (sample->random >> 8) % count;
}

static void begin_sample(struct queue_sample *sample, const struct queued_launch *launch, uint64_t segment,
                         struct context_events *events) {
    sample->state = SAMPLE_FILLING;
    sample->index = draw(sample, sample->launches ? sample->launches : 1);
    sample->segment = segment;
    sample->is_delayed = sample->is_spoiled = false;
    sample->has_doubtful = false;
    __atomic_store_n(&sample->is_stream_idle, false, __ATOMIC_RELAXED);
    sample->expected = 0;
    sample->launches = 0;
    sample->context = launch->context;
    sample->stream = launch->stream;
    sample->begin = &events->segment_begin;
    sample->end = &events->segment_end;
}

/* The segment is complete when a launch begins the next one in the same stream. If the segment was open by then, the
 * card may have been idle after it. */
static bool is_measurable(const struct queue_sample *sample, const struct queued_launch *launch, uint64_t opened) {
    return !sample->is_launch && !sample->has_doubtful && sample->launches >= LAUNCHES_MIN &&
           opened < sample->segment && is_in_same_stream(sample, launch);
}

/* Of a segment that cannot be measured, a launch is sampled the next time. */
static void end_segment(struct queue_sample *sample, bool is_measured, struct launch_slot *slot) {
    sample->state = is_measured ? SAMPLE_RECORDED : SAMPLE_NONE;
    sample->is_launch |= !is_measured;
    if (is_measured) slot->sample_end_before = sample->end;
}

/* Of an open segment only a launch is sampled, because the card may be idle between its launches. */
static void note_first_launch(struct queue_sample *sample, const struct queued_launch *launch, uint64_t segment,
                              uint64_t opened, struct launch_slot *slot) {
    if (sample->state == SAMPLE_FILLING) end_segment(sample, is_measurable(sample, launch, opened), slot);
    slot->reads_sample = sample->state == SAMPLE_RECORDED && !slot->sample_end_before;
    if (slot->reads_sample) sample->state = SAMPLE_READ;
    if (sample->state != SAMPLE_NONE || draw(sample, INTERVAL)) return;
    begin_sample(sample, launch, segment, slot->context_events);
    sample->is_launch |= segment <= opened;
    if (!sample->is_launch) slot->sample_begin = sample->begin;
}

static void sample_launch(struct queue_sample *sample, uint64_t key, bool is_open, struct launch_slot *slot) {
    sample->key = key;
    sample->state = SAMPLE_RECORDED;
    slot->sample_idle = is_open ? &sample->is_stream_idle : NULL;
    slot->sample_begin = sample->begin;
    slot->sample_end_after = sample->end;
}

/* Does not wait until the launch is drawn, because one kernel that is estimated at a hundred times its time distorts
 * every segment that contains it. `launches` is that of the last whole segment, from which the next index is drawn. */
static void sample_at_once(struct queue_sample *sample, const struct queued_launch *launch, struct segment_place place,
                           uint64_t opened, struct launch_slot *slot) {
    unsigned launches = sample->launches;
    begin_sample(sample, launch, place.number, slot->context_events);
    sample->launches = launches;
    sample->is_launch = true;
    sample->index = place.is_new ? 0 : 1;
    sample_launch(sample, launch->key, place.number <= opened, slot);
}

void queue_sample_note_launch(struct queue_sample *sample, const struct queued_launch *launch,
                              struct segment_place place, uint64_t opened, struct launch_slot *slot) {
    if (place.is_new) note_first_launch(sample, launch, place.number, opened, slot);
    if (launch->is_doubtful && sample->state == SAMPLE_NONE) sample_at_once(sample, launch, place, opened, slot);
    if (sample->state != SAMPLE_FILLING || sample->segment != place.number) return;
    if (!is_in_same_stream(sample, launch)) {
        sample->state = SAMPLE_NONE;
        return;
    }
    if (sample->is_launch && sample->launches == sample->index)
        sample_launch(sample, launch->key, place.number <= opened, slot);
    sample->launches++;
    sample->has_doubtful |= launch->is_doubtful;
    sample->expected += launch->estimate;
}

void queue_sample_note_delay(struct queue_sample *sample, uint64_t number) {
    sample->is_delayed |= sample->segment == number && !(sample->is_launch && sample->index);
}

void queue_sample_spoil(struct queue_sample *sample) { sample->is_spoiled = true; }

bool queue_sample_read(const struct queue_sample *sample, uint64_t *measured) {
    float ms = 0;
    CUresult result = CUDA_ERROR_INVALID_HANDLE;
    CUevent begin = __atomic_load_n(sample->begin, __ATOMIC_ACQUIRE);
    CUevent end = __atomic_load_n(sample->end, __ATOMIC_ACQUIRE);
    if (begin && end) CAPTURE_ALLOWS(result = REAL(cuEventElapsedTime)(&ms, begin, end));
    *measured = result == CUDA_SUCCESS && ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    return result != CUDA_ERROR_NOT_READY;
}

/* A delayed sample is dropped if it exceeds the kernel's estimate by less than DELAY_MAX: it may have begun late. */
static void learn_launch(const struct queue_sample *sample, struct estimates *estimates, uint64_t measured) {
    uint64_t estimate = 0;
    bool is_known = estimates_of(estimates, sample->key, &estimate);
    bool is_explained = is_known && measured >= estimate && measured < estimate + DELAY_MAX;
    if (!sample->is_delayed || !is_explained)
        estimates_learn(estimates, sample->key,
                        turn_sampled(measured, __atomic_load_n(&sample->is_stream_idle, __ATOMIC_RELAXED)));
}

void queue_sample_note_unfinished(struct queue_sample *sample) {
    if (sample->state == SAMPLE_READ) sample->state = SAMPLE_RECORDED;
}

void queue_sample_learn(struct queue_sample *sample, struct estimates *estimates, uint64_t measured) {
    if (sample->state != SAMPLE_READ) return;
    bool is_valid = measured && !sample->is_spoiled;
    if (is_valid && sample->is_launch)
        learn_launch(sample, estimates, measured);
    else if (is_valid && !sample->is_delayed)
        estimates_fit(estimates, sample->expected, measured, true);
    sample->is_launch = !sample->is_launch;
    sample->state = SAMPLE_NONE;
}
