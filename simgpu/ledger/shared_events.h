/* Events that several processes share (cuIpcGetEventHandle): where the work lies that each was last recorded behind. */
#ifndef SIMGPU_LEDGER_SHARED_EVENTS_H
#define SIMGPU_LEDGER_SHARED_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/card_time.h"

/* A place in a card's work. Of an event that was never recorded, the queue is not open. */
struct recorded_at {
    struct card_queue queue;
    uint64_t position;
};

/* Makes the event at `at` one of this process, and returns its id; 0 when there is no room. */
uint64_t shared_event_create(struct recorded_at at);
/* Frees an event that this process made. */
void shared_event_free(uint64_t id);
/* Records the event, in any process that has its id. An event that its maker has freed, or whose maker has ended, stays
 * as it is. */
void shared_event_record(uint64_t id, struct recorded_at at);
/* Returns false for an event that its maker has freed, or whose maker has ended. */
bool shared_event_read(uint64_t id, struct recorded_at *at);
bool shared_event_is_own(uint64_t id);

/* For the other files of the ledger: frees the events of a dead process. Under the file's lock. */
void shared_events_forget(uint32_t slot);

#endif
