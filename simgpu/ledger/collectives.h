/* Collectives: kernels of several cards, and of several processes, that wait for each other, as NCCL's do. The kernel
 * of each rank spins from its begin until the kernels of all ranks have begun.
 *
 * All functions but collectives_are_any are called with the time lines of all cards locked (ledger/card_time.c). */
#ifndef SIMGPU_LEDGER_COLLECTIVES_H
#define SIMGPU_LEDGER_COLLECTIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/card_queue.h"

/* Whether a collective may be on its way. Also with one card locked. */
bool collectives_are_any(void);
/* A rank's kernel is launched into the queue. Returns the ticket of its collective; 0 when there is no room. */
uint64_t collective_join(struct collective_key key, struct card_queue queue);
/* A rank's kernel has begun. Releases all when it is the last one. */
void collective_note_begun(uint64_t ticket);
/* Forgets collectives of which no kernel is left, because their processes have ended. */
void collectives_drop_ended(void);

#endif
