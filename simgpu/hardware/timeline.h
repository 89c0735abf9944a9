/* When a card does the work of the contexts that share it: round-robin time slices, in virtual time.
 *
 * No clock, no lock and no file: time is an argument, in ns. Every question and every change is preceded by
 * timeline_advance, which brings the card up to now.
 *
 * A queue is one hardware channel of a context: the work of some of its streams, in the order of their launches. The
 * queues of a context share its time slices. Each kernel fills the card, so one queue works at a time: until its work
 * runs out, or the slice ends. A position in a queue is the amount of work before it, in ns, and passes once that work
 * is done. The runs of a queue record when. A barrier in a queue holds its later work back until a position in another
 * queue has passed. */
#ifndef SIMGPU_HARDWARE_TIMELINE_H
#define SIMGPU_HARDWARE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

/* Measured on an H200, driver 580: a pair of events around at most this much work reads its true time, whatever other
 * contexts do. */
#define TIMELINE_SLICE_NS UINT64_C(2000000)
/* Switch away from a context that has work left. Measured on an H100: two compute-bound processes together do 79 % of
 * what one does alone, which is 2 of 2.53 ms. */
#define TIMELINE_SWITCH_NS UINT64_C(530000)
/* Switch away from a context whose work has run out. Measured: exclusive turns of 5, 10 and 20 ms do 97, 98 and 99 % of
 * what one context does alone; here 96.2, 98.0 and 99.0 %. */
#define TIMELINE_HANDOVER_NS UINT64_C(200000)
/* Work that has no more than this left at the end of its slice is finished before the switch. */
#define TIMELINE_GRACE_NS UINT64_C(20000)

#define TIMELINE_QUEUES   512
#define TIMELINE_RUNS     128
#define TIMELINE_CHANNELS 17 /* queues of one context */
#define TIMELINE_BARRIERS 64 /* of one queue at a time */

/* Work that a queue did without a break: work at position `from` was done at time `at`. */
struct timeline_run {
    uint64_t from;
    uint64_t at;
};

/* The work from `from` on waits until `position` has passed in the queue `queue`, or until that queue is closed. */
struct timeline_barrier {
    uint64_t from;
    uint64_t position;
    uint64_t id; /* of `queue` */
    uint64_t queue;
};

struct timeline_queue {
    uint64_t id; /* 0 = free; no id is used twice */
    uint64_t owner;
    uint64_t submitted;                  /* ns of work so far */
    uint64_t done;                       /* ns of work so far */
    uint64_t limit;                      /* the work from this position on is held back; 0 = none is */
    uint64_t ended;                      /* time when it was last on the card */
    uint64_t runs;                       /* number of runs so far; the last TIMELINE_RUNS are kept */
    uint32_t leader;                     /* number of the context's first queue, which may be this one */
    uint32_t last;                       /* of a leader: index in `channel` of the queue that worked last */
    uint32_t barriers;                   /* that have not opened, in the order of `from` */
    uint32_t channel[TIMELINE_CHANNELS]; /* of a leader: numbers of the context's queues; 0 = none */
    struct timeline_barrier barrier[TIMELINE_BARRIERS];
    struct timeline_run run[TIMELINE_RUNS];
};

/* All zero at first. A process may be killed at any instruction of a change: then times are slightly wrong, and nothing
 * else is. */
struct timeline {
    uint64_t at; /* the card is up to this time */
    uint64_t ids;
    uint64_t slice;                               /* ns that the context on the card has left */
    uint64_t switching;                           /* ns left until that context begins to work */
    uint32_t current;                             /* queue that works, or did last; 0 = none was yet */
    uint32_t queues_used;                         /* queues from here on were never used */
    uint64_t pending[TIMELINE_QUEUES / 64];       /* one bit for each leader whose context may have work */
    uint64_t barriers;                            /* of all queues */
    struct timeline_queue queue[TIMELINE_QUEUES]; /* queue 0 is never used */
};

/* Returns the number of a new queue of the context with this leader, 0 when there is no room. `leader` 0: the queue is
 * the first one of its context. */
uint32_t timeline_open(struct timeline *card, uint64_t owner, uint32_t leader);
/* Discards the work that is not done. */
void timeline_close(struct timeline *card, uint32_t queue);

/* Brings the card up to `now`. Does nothing when the card is past that time. */
void timeline_advance(struct timeline *card, uint64_t now);
/* Adds work at the end of the queue and returns its position. */
uint64_t timeline_submit(struct timeline *card, uint32_t queue, uint64_t ns);
/* Adds an event behind the position `after` and returns the event's position. It passes only while the context is on
 * the card, so an event also asks for the card. */
uint64_t timeline_mark(struct timeline *card, uint32_t queue, uint64_t after);

/* Adds a barrier at the end of the queue, unless `position` in the queue `other` has passed, and returns the queue's
 * position behind it. 0 when the queue has no room for one more. */
uint64_t timeline_wait(struct timeline *card, uint32_t queue, uint32_t other, uint64_t position);

/* Holds back the work from `position` on; 0 = no work is held back any more. */
void timeline_hold(struct timeline *card, uint32_t queue, uint64_t position);

bool timeline_has_work(const struct timeline *card, uint32_t queue);
/* Time when the position passed, 0 = not yet. Of a position older than all kept runs, the oldest time known. */
uint64_t timeline_passed(const struct timeline *card, uint32_t queue, uint64_t position);
/* A lower bound of the time when the position passes, as long as no queue is closed. */
uint64_t timeline_earliest(const struct timeline *card, uint32_t queue, uint64_t position);
/* The next leader after `after`, in round-robin order, whose bit in `pending` is set; 0 = none. */
uint32_t timeline_next(const struct timeline *card, uint32_t after);

#endif
