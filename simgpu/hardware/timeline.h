/* When a card does the work of the contexts that share it: by time slices in turn, in virtual time. No clock, no lock
 * and no file here: time is an argument, in ns, and whoever looks brings the card up to now first.
 *
 * A queue is a context's work in the order in which it was launched, whatever the streams, for a kernel fills the card.
 * A place in it is told by the work up to there: a position passes when so much is done. Runs remember when. */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

/* Measured on an H200, driver 580: a pair of events around as much work reads its true time among busy neighbours. */
#define TIMELINE_SLICE_NS UINT64_C(2000000)
/* From a context with work left. Two compute-bound processes do 79 % together of what one does alone (measured on an
 * H100): 2 of 2.53 ms. */
#define TIMELINE_SWITCH_NS UINT64_C(530000)
/* From a context whose work has run out. Exclusive turns of 5, 10 and 20 ms do 97, 98 and 99 % (measured): 96.2, 98.0
 * and 99.0 here. */
#define TIMELINE_HANDOVER_NS UINT64_C(200000)

/* An interruption takes a moment, in which what has so little left ends. */
#define TIMELINE_GRACE_NS UINT64_C(20000)

#define TIMELINE_QUEUES 512
#define TIMELINE_RUNS   128

/* Of a queue, without a break: the work after `from` is done from `at` on. */
typedef struct {
    uint64_t from;
    uint64_t at;
} TimelineRun;

typedef struct {
    uint64_t id; /* never given again; 0 = free */
    uint64_t owner;
    uint64_t submitted; /* ns of work */
    uint64_t done;
    uint64_t ended; /* when it was last on the card */
    uint64_t runs;  /* so far, of which the last are kept */
    TimelineRun run[TIMELINE_RUNS];
} TimelineQueue;

/* All of it may be 0 at first. Whoever changes it may die at any instruction: what is left is a little wrong at most.
 */
typedef struct {
    uint64_t at; /* all before is done */
    uint64_t ids;
    uint64_t slice;                         /* left to the context on the card */
    uint64_t switching;                     /* left until it can begin */
    uint32_t current;                       /* queue whose context is on the card; 0 = none ever was */
    uint32_t high;                          /* queues ever used */
    uint64_t pending[TIMELINE_QUEUES / 64]; /* a bit for each queue that may have work */
    TimelineQueue queue[TIMELINE_QUEUES];   /* 0 is never used */
} Timeline;

/* A queue's number, 0 when there is no room. */
uint32_t timeline_open(Timeline *card, uint64_t owner);
/* What it still had to do is never done. */
void timeline_close(Timeline *card, uint32_t queue);

/* Brings the card up to `now`, which may be in its past: then nothing changes. Before every question and every change.
 */
void timeline_advance(Timeline *card, uint64_t now);
/* More work, at the end: its position. */
uint64_t timeline_submit(Timeline *card, uint32_t queue, uint64_t ns);
/* The position of an event behind `after`: it passes when its context is on the card, which it asks for. */
uint64_t timeline_mark(Timeline *card, uint32_t queue, uint64_t after);

bool timeline_has_work(const Timeline *card, uint32_t queue);
/* When that position passed; 0 = not yet. Of one passed long ago, the oldest moment known. */
uint64_t timeline_passed(const Timeline *card, uint32_t queue, uint64_t position);
/* No moment before this can be when it passes, were no queue closed. */
uint64_t timeline_earliest(const Timeline *card, uint32_t queue, uint64_t position);
/* The next queue after that one with its bit set, in turn; 0 = none. */
uint32_t timeline_next(const Timeline *card, uint32_t after);

#endif
