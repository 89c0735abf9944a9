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
/* Any process that knows the event may record it. Does nothing when the event is gone. */
void shared_event_record(uint64_t id, struct recorded_at at);
/* False when the event is gone: its maker has freed it, or is dead. */
bool shared_event_read(uint64_t id, struct recorded_at *at);
bool shared_event_is_own(uint64_t id);

/* For the other files of the ledger: frees the events of a dead process. Under the file's lock. */
void shared_events_forget(uint32_t slot);

#endif
