/* Segments: the launches that a gate has put on the card ahead of its turn (ADR 35), in the order in which they were
 * launched. A segment is closed (its streams wait) until it is opened; the card writes the number of each segment that
 * it begins. So the GPU time that is open but not done is small, however far the host is ahead of the card. Pure. All
 * times are in ns. */
#ifndef VGPU_COMPUTE_QUEUE_SEGMENTS_H
#define VGPU_COMPUTE_QUEUE_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { SEGMENTS = 64 };

struct segment {
    uint64_t expected; /* GPU time of its launches */
    unsigned launches;
};

/* Segments are numbered from 1 on; `number % SEGMENTS` is the place of a segment in `ring`. A structure of zeros has
 * no segment. */
struct segments {
    struct segment ring[SEGMENTS];
    uint64_t newest;          /* number of the newest segment; 0 = there was none */
    uint64_t opened;          /* number of the newest segment that was opened */
    uint64_t begun;           /* number of the newest segment that the card has begun, as far as it is known */
    bool is_sealed;           /* the newest segment takes no more launches */
    uint64_t closed_ns;       /* GPU time of all closed segments */
    unsigned closed_launches; /* launches in all closed segments, and the operations that separate segments */
};

/* Where a launch has got. */
struct segment_place {
    uint64_t number;
    bool is_new; /* the launch is the first of its segment */
};

bool segments_any_closed(const struct segments *segments);

/* Whether there is room for one more closed launch of `estimate`. If all segments are open, there is. */
bool segments_has_room(const struct segments *segments, uint64_t estimate);

/* Whether a launch of `estimate` would begin a new segment, where segments take up to `size`. `is_open`: the launch
 * runs in the turn that is held, so it is not added to a closed segment, and no segment is closed. */
bool segments_begins_new(const struct segments *segments, uint64_t estimate, uint64_t size);

/* Adds a launch to the newest segment or to a new one, which is open at once if `is_open`. */
struct segment_place segments_add(struct segments *segments, uint64_t estimate, uint64_t size, bool is_open);

/* The oldest closed segment; there is one. */
const struct segment *segments_next(const struct segments *segments);

/* Opens the oldest closed segment, which takes no more launches, and returns its number. */
uint64_t segments_open_next(struct segments *segments);

/* The card has begun the segment whose number ends with these 32 bits. A number of no open segment is ignored. */
void segments_note_begun(struct segments *segments, uint32_t low_bits);

/* GPU time of the segments that are open and that the card has not begun. */
uint64_t segments_not_begun_ns(const struct segments *segments);

/* GPU time of the segment that the card has begun last; 0 = none of these is remembered. */
uint64_t segments_begun_ns(const struct segments *segments);

#endif
