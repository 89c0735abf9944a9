#include "ledger/shared_events.h"

#include "ledger/state.h"

/* The entry of an event; NULL where its maker has freed it, or has ended. */
static struct shared_event *find(uint64_t id) {
    struct shared_event *event = &state->event[id % SHARED_EVENTS];
    return id != 0 && event->id == id && slot_is_alive((int)event->maker) ? event : NULL;
}

static struct shared_event *free_entry(void) {
    for (uint64_t i = 0; i < SHARED_EVENTS; i++)
        if (!find(state->event[i].id)) return &state->event[i];
    return NULL;
}

static void set(struct shared_event *event, struct recorded_at at) {
    event->card = at.queue.card;
    event->queue = at.queue.number;
    event->queue_id = at.queue.id;
    event->position = at.position;
}

uint64_t shared_event_create(struct recorded_at at) {
    HOLD_STATE();
    struct shared_event *event = free_entry();
    if (!event) return 0;
    state->event_ids += SHARED_EVENTS;
    event->maker = (uint32_t)own_slot;
    set(event, at);
    event->id = state->event_ids + (uint64_t)(event - state->event);
    return event->id;
}

void shared_event_free(uint64_t id) {
    HOLD_STATE();
    struct shared_event *event = find(id);
    if (event) event->id = 0;
}

void shared_event_record(uint64_t id, struct recorded_at at) {
    HOLD_STATE();
    struct shared_event *event = find(id);
    if (event) set(event, at);
}

bool shared_event_read(uint64_t id, struct recorded_at *at) {
    HOLD_STATE();
    const struct shared_event *event = find(id);
    if (!event) return false;
    at->queue = (struct card_queue){.card = event->card, .number = event->queue, .id = event->queue_id};
    at->position = event->position;
    return true;
}

bool shared_event_is_own(uint64_t id) {
    HOLD_STATE();
    const struct shared_event *event = find(id);
    return event && event->maker == (uint32_t)own_slot;
}

void shared_events_forget(uint32_t slot) {
    for (uint64_t i = 0; i < SHARED_EVENTS; i++)
        if (state->event[i].maker == slot) state->event[i].id = 0;
}
