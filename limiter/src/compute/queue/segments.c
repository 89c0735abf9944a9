#include "compute/queue/segments.h"

/* Bounds of what is closed. A hardware channel takes 1,020 launches, 734 with 4,000 bytes of parameters each, before
 * the driver blocks the host (H200, driver 580); events and copies of the program count, too. A segment adds a wait, a
 * write and, at times, an event. */
enum { CLOSED_LAUNCHES = 448, OPERATIONS = 3 };
#define CLOSED_NS 20000000ULL

static struct segment *at(struct segments *segments, uint64_t number) { return &segments->ring[number % SEGMENTS]; }

static uint64_t expected(const struct segments *segments, uint64_t number) {
    return segments->ring[number % SEGMENTS].expected;
}

bool segments_any_closed(const struct segments *segments) { return segments->newest != segments->opened; }

bool segments_has_room(const struct segments *segments, uint64_t estimate) {
    if (segments->newest - segments->begun >= SEGMENTS - 1) return false;
    if (!segments_any_closed(segments)) return true;
    return segments->closed_launches < CLOSED_LAUNCHES && segments->closed_ns + estimate <= CLOSED_NS;
}

bool segments_begins_new(const struct segments *segments, uint64_t estimate, uint64_t size) {
    return segments->newest == 0 || segments->is_sealed || expected(segments, segments->newest) + estimate > size;
}

struct segment_place segments_add(struct segments *segments, uint64_t estimate, uint64_t size, bool is_open) {
    bool is_joinable = is_open || segments_any_closed(segments);
    bool is_new = !is_joinable || segments_begins_new(segments, estimate, size);
    if (is_new) {
        *at(segments, ++segments->newest) = (struct segment){0};
        segments->is_sealed = false;
    }
    if (is_open) segments->opened = segments->newest;
    at(segments, segments->newest)->expected += estimate;
    at(segments, segments->newest)->launches++;
    if (!is_open) {
        segments->closed_ns += estimate;
        segments->closed_launches += is_new ? 1U + OPERATIONS : 1U;
    }
    return (struct segment_place){.number = segments->newest, .is_new = is_new};
}

const struct segment *segments_next(const struct segments *segments) {
    return &segments->ring[(segments->opened + 1) % SEGMENTS];
}

uint64_t segments_open_next(struct segments *segments) {
    const struct segment *opened = at(segments, ++segments->opened);
    segments->is_sealed |= !segments_any_closed(segments);
    segments->closed_ns -= opened->expected;
    segments->closed_launches -= opened->launches + OPERATIONS;
    return segments->opened;
}

void segments_note_begun(struct segments *segments, uint32_t low_bits) {
    uint32_t ahead = low_bits - (uint32_t)segments->begun;
    if (ahead <= segments->opened - segments->begun) segments->begun += ahead;
}

uint64_t segments_not_begun_ns(const struct segments *segments) {
    uint64_t sum = 0;
    for (uint64_t number = segments->begun + 1; number <= segments->opened; number++) sum += expected(segments, number);
    return sum;
}

uint64_t segments_begun_ns(const struct segments *segments) { return expected(segments, segments->begun); }
