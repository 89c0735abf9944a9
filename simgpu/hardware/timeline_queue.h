/* The queues of a card's time line (hardware/timeline.h): the work that each has and did, and what holds it back. */
#ifndef SIMGPU_HARDWARE_TIMELINE_QUEUE_H
#define SIMGPU_HARDWARE_TIMELINE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define TIMELINE_QUEUES   512
#define TIMELINE_RUNS     128
#define TIMELINE_CHANNELS 17 /* queues of one context */
#define TIMELINE_BARRIERS 64 /* of one queue at a time */
#define TIMELINE_CLIENTS  48 /* of one MPS server */
#define TIMELINE_SPINS    64 /* of one queue at a time */

/* Work of a kernel that spins until it is released: longer than any slice. */
#define TIMELINE_SPIN_NS (UINT64_C(1) << 50)

/* Time that work takes, in thousandths: work that has all of the multiprocessors that it can fill. */
#define TIMELINE_FULL_SPEED UINT64_C(1000)

/* Work that a queue did without a break: work at position `from` was done at time `at`, and a thousand ns of the work
 * behind it took `stretch` ns each. */
struct timeline_run {
    uint64_t from;
    uint64_t at;
    uint64_t stretch;
};

/* The work from `from` on waits until `position` has passed in the queue `queue`, or until that queue is closed. */
struct timeline_barrier {
    uint64_t from;
    uint64_t position;
    uint64_t id; /* of `queue` */
    uint64_t queue;
};

/* From position `from` on, the queue keeps the card busy without doing work, until it is released. */
struct timeline_spin {
    uint64_t from;
    uint64_t ticket; /* the caller's number for what is waited for */
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
    uint32_t server;                     /* of a leader: number of its server's queue, a server's own; 0 = none */
    uint32_t cap;                        /* of a client's leader: percent of the multiprocessors it may use */
    uint32_t fills;                      /* percent of the multiprocessors that its work fills; 0 = all */
    uint32_t carry;                      /* thousandths of a ns spent on the next ns of work */
    uint32_t channel[TIMELINE_CHANNELS]; /* of a leader: numbers of the context's queues; 0 = none */
    uint32_t spins;                      /* that were not released, in the order of `from` */
    uint32_t has_begun;                  /* 1: the first of them has begun */
    struct timeline_spin spin[TIMELINE_SPINS];
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
    uint64_t pending[TIMELINE_QUEUES / 64];       /* one bit for each leader or server that may have work */
    uint64_t barriers;                            /* of all queues */
    uint32_t begun;                               /* queue whose spin has just begun; 0 = none */
    uint32_t spinning;                            /* queues whose first spin has begun */
    struct timeline_queue queue[TIMELINE_QUEUES]; /* queue 0 is never used */
};

/* Whether the queue has come to a spin: it keeps the card busy, and does no work. */
bool timeline_is_spinning(const struct timeline *card, uint32_t queue);
/* ns of work of the queue that can be done now; TIMELINE_SPIN_NS for one that spins. */
uint64_t timeline_work_of(const struct timeline *card, uint32_t queue);
/* The queue of a context to work on: the first one with work behind the one that worked last; 0 = none. */
uint32_t timeline_channel_due(const struct timeline *card, uint32_t leader);
/* ns of work of a context that can be done now. */
uint64_t timeline_channels_work(const struct timeline *card, uint32_t leader);
/* `ns` of work of the queue, or less: up to the next position that a barrier waits for. */
uint64_t timeline_until_barrier(const struct timeline *card, uint32_t queue, uint64_t ns);
/* The queue works at time `at`: a thousand ns of work take `stretch` ns each. */
void timeline_record_run(struct timeline_queue *queue, uint64_t at, uint64_t stretch);

/* Time when the position passed, 0 = not yet. Of a position older than all kept runs, the oldest time known. */
uint64_t timeline_passed(const struct timeline *card, uint32_t queue, uint64_t position);

#endif
