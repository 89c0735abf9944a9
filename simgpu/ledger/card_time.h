/* The time of each card: when it does the work that the contexts of all processes launch (hardware/timeline.h).
 *
 * No process or thread keeps a card's time line going: each call first brings it up to now. */
#ifndef SIMGPU_LEDGER_CARD_TIME_H
#define SIMGPU_LEDGER_CARD_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/card_queue.h"

/* Opens a queue on the card; false when there is no room, or the MPS server of this process has ended. `leader`: the
 * context's first queue; 0 = this is the first. */
bool card_queue_open(const char *uuid, uint32_t leader, struct card_queue *out);
/* Discards work that is not done. */
void card_queue_close(struct card_queue queue);
/* Adds `ns` of work and returns its position. From now on the queue's work fills `fills` percent of the card's
 * multiprocessors, which matters beside other clients of an MPS server. `runs` is how often the queue's work began or
 * resumed so far. */
uint64_t card_queue_add(struct card_queue queue, uint64_t ns, uint32_t fills, uint64_t *runs);
/* Adds the kernel of one rank of a collective, which keeps the card busy until the kernels of all ranks have begun, and
 * for `ns` after that. Returns its position; 0 when there is no room for one more. As a client of an MPS server, it
 * does not wait. */
uint64_t card_queue_collective(struct card_queue queue, struct collective_key key, uint64_t ns);
/* Adds an event behind the position `after` and returns the event's position. */
uint64_t card_queue_mark(struct card_queue queue, uint64_t after);
/* Holds back all later work until `position` has passed in the queue `other` of the same card, and returns the queue's
 * position behind that barrier; 0 when the queue has no room for one more. */
uint64_t card_queue_wait(struct card_queue queue, struct card_queue other, uint64_t position);
/* Holds back the work behind `position`; 0 = no work is held back any more. */
void card_queue_hold(struct card_queue queue, uint64_t position);
/* CLOCK_MONOTONIC ns when the position passed. 0 = not yet: `earliest` is then the time when to ask
 * again. All positions of a closed queue have passed. */
uint64_t card_queue_passed(struct card_queue queue, uint64_t position, uint64_t *earliest);
bool card_is_busy(const char *uuid);

/* For the other files of the ledger. */

/* Discards the work of a dead process. */
void card_time_forget(uint32_t slot);
/* Writes into each slot until when its process keeps the card busy. */
void card_time_publish(int card);

#endif
