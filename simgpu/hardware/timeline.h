/* When a card does the work of the contexts that share it: round-robin time slices, in virtual time.
 *
 * No clock, no lock and no file: time is an argument, in ns. Every question and every change is preceded by
 * timeline_advance, which brings the card up to now.
 *
 * A queue is one hardware channel of a context: the work of some of its streams, in the order of their launches. The
 * queues of a context share its time slices. Each kernel fills the card, so one queue works at a time: until its work
 * runs out, or the slice ends. A position in a queue is the amount of work before it, in ns, and passes once that work
 * is done. The runs of a queue record when. A barrier in a queue holds its later work back until a position in another
 * queue has passed.
 *
 * A queue may spin: it keeps the card busy without doing work, from a position on, until it is released. That is a
 * kernel which waits for kernels of other cards. The caller knows what it waits for, and brings the cards up to each
 * other's times.
 *
 * Contexts that are clients of one MPS server are one context to the others: they share its time slices. Among
 * themselves they work at the same moment (hardware/timeline_clients.h). */
#ifndef SIMGPU_HARDWARE_TIMELINE_H
#define SIMGPU_HARDWARE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/timeline_queue.h"

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

/* Returns the number of a new queue of the context with this leader, 0 when there is no room. `leader` 0: the queue is
 * the first one of its context. */
uint32_t timeline_open(struct timeline *card, uint64_t owner, uint32_t leader);
/* Returns the number of a new queue without work, which stands for an MPS server; 0 when there is no room. */
uint32_t timeline_open_server(struct timeline *card, uint64_t owner);
/* Makes the context of the leader, which has no work, a client of the server. */
void timeline_join(struct timeline *card, uint32_t leader, uint32_t server, uint32_t cap);
/* Discards the work that is not done; of a server, closes the queues of its clients too. */
void timeline_close(struct timeline *card, uint32_t queue);
/* From now on the queue's work fills that many percent of the multiprocessors. */
void timeline_set_fill(struct timeline *card, uint32_t queue, uint32_t percent);

/* Brings the card up to `now`. Does nothing when the card is past that time. Stops at an earlier time when a spin
 * begins, until timeline_take_begun has been called. */
void timeline_advance(struct timeline *card, uint64_t now);
/* Adds work at the end of the queue and returns its position. */
uint64_t timeline_submit(struct timeline *card, uint32_t queue, uint64_t ns);
/* Adds a spin at the end of the queue, `ns` of work behind it, and returns the queue's position behind both. 0 when the
 * queue has no room for one more spin. Not for clients of an MPS server. */
uint64_t timeline_spin(struct timeline *card, uint32_t queue, uint64_t ns, uint64_t ticket);
/* The ticket of the spin at whose begin the card has stopped, which may then go on; 0 = none. */
uint64_t timeline_take_begun(struct timeline *card);
/* Ends the spin of the queue, if it has begun. */
void timeline_release(struct timeline *card, uint32_t queue);
/* Adds an event behind the position `after` and returns the event's position. It passes only while the context is on
 * the card, so an event also asks for the card. */
uint64_t timeline_mark(struct timeline *card, uint32_t queue, uint64_t after);

/* Adds a barrier at the end of the queue, unless `position` in the queue `other` has passed, and returns the queue's
 * position behind it. 0 when the queue has no room for one more. */
uint64_t timeline_wait(struct timeline *card, uint32_t queue, uint32_t other, uint64_t position);

/* Holds back the work from `position` on; 0 = no work is held back any more. */
void timeline_hold(struct timeline *card, uint32_t queue, uint64_t position);

bool timeline_has_work(const struct timeline *card, uint32_t queue);
/* A lower bound of the time when the position passes, as long as no queue is closed. */
uint64_t timeline_earliest(const struct timeline *card, uint32_t queue, uint64_t position);
/* The next context after `after`, in round-robin order, whose bit in `pending` is set: a leader that is no client, or a
 * server; 0 = none. */
uint32_t timeline_next(const struct timeline *card, uint32_t after);

#endif
