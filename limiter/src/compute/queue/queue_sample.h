/* Measures samples of the work that is queued ahead of its turn: a launch, which teaches the estimate of its kernel, or
 * a segment, which shows how long launches take together. A sample lies between two events in one stream. The gate's
 * lock protects the fields; the events are recorded and read without it. */
#ifndef VGPU_COMPUTE_QUEUE_QUEUE_SAMPLE_H
#define VGPU_COMPUTE_QUEUE_QUEUE_SAMPLE_H

#include "compute/queue/segments.h"
#include "compute/queue/turn_events.h"
#include "compute/turn/estimates.h"

enum sample_state {
    SAMPLE_NONE,     /* the next sample may begin */
    SAMPLE_FILLING,  /* the sampled segment still takes launches */
    SAMPLE_RECORDED, /* the card has passed the events, or will */
    SAMPLE_READ      /* a thread reads the events */
};

struct queue_sample {
    enum sample_state state;
    bool is_launch;      /* a launch is sampled, not a segment */
    bool is_delayed;     /* `begin` may have passed long before the card began: see queue_sample_note_delay */
    bool is_spoiled;     /* the card may have run other containers meanwhile, so it teaches nothing */
    bool has_doubtful;   /* the sampled segment has launches of which the estimates may be far too long */
    bool is_stream_idle; /* the stream had no work before the sampled launch */
    unsigned index;      /* of the launch in its segment that is to be sampled */
    uint32_t random;     /* state of the generator that draws samples */
    unsigned launches;   /* of the sampled segment */
    uint64_t segment;    /* its number */
    uint64_t key;        /* of the sampled launch */
    uint64_t expected;   /* GPU time of the segment, by its estimates */
    CUcontext context;   /* of the stream and of both events */
    CUstream stream;
    CUevent *begin, *end; /* atomic; where the events are */
};

/* A launch of known GPU time `estimate` into a stream; `key` and `is_doubtful` as for the estimates. */
struct queued_launch {
    uint64_t key, estimate;
    bool is_doubtful;
    CUcontext context;
    CUstream stream;
};

/* A launch is admitted at `place`; the segments up to the number `opened` are open. Fills in the events that the
 * launching thread records, and says by `slot->reads_sample` that it is to call queue_sample_read. */
void queue_sample_note_launch(struct queue_sample *sample, const struct queued_launch *launch,
                              struct segment_place place, uint64_t opened, struct launch_slot *slot);

/* The segment `number` is the first of a turn, so an event before its first launch may pass while the card is still
 * busy with the work of another tenant, or changes contexts. */
void queue_sample_note_delay(struct queue_sample *sample, uint64_t number);

/* What is being sampled runs beside other containers. */
void queue_sample_spoil(struct queue_sample *sample);

/* Whether the sample is over: then `measured` is the ns between its events, or 0 if they cannot be measured. Asks the
 * driver, does not wait. The caller holds no lock, and calls queue_sample_learn or queue_sample_note_unfinished. */
bool queue_sample_read(const struct queue_sample *sample, uint64_t *measured);

/* The sample is not over, and is to be read again. */
void queue_sample_note_unfinished(struct queue_sample *sample);

/* Teaches the estimates what queue_sample_read has measured; 0 teaches nothing. The next sample may begin. */
void queue_sample_learn(struct queue_sample *sample, struct estimates *estimates, uint64_t measured);

#endif
