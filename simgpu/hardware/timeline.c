#include "hardware/timeline.h"

#include <stddef.h>
#include <string.h>

#include "hardware/timeline_clients.h"

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

bool timeline_has_work(const struct timeline *card, uint32_t queue) { return timeline_work_of(card, queue) > 0; }

static void set_pending(struct timeline *card, uint32_t queue, bool pending) {
    uint64_t bit = UINT64_C(1) << queue % 64;
    uint64_t *word = &card->pending[queue / 64];
    *word = pending ? *word | bit : *word & ~bit;
}

/* What has time slices: the queue's server if its context is a client, else its leader. */
static uint32_t context_of(const struct timeline *card, uint32_t queue) {
    uint32_t leader = card->queue[queue].leader;
    uint32_t server = card->queue[leader].server;
    return server != 0 ? server : leader;
}

/* The queue of a context to work on; of a server, one of them; 0 = none. */
static uint32_t queue_due(const struct timeline *card, uint32_t context) {
    return timeline_is_server(card, context) ? timeline_client_due(card, context) : timeline_channel_due(card, context);
}

static void refresh_pending(struct timeline *card, uint32_t queue) {
    uint32_t context = context_of(card, queue);
    set_pending(card, context, queue_due(card, context) != 0);
}

static bool add_channel(struct timeline *card, uint32_t leader, uint32_t queue) {
    for (uint32_t place = 0; place < TIMELINE_CHANNELS; place++)
        if (card->queue[leader].channel[place] == 0) {
            card->queue[leader].channel[place] = queue;
            return true;
        }
    return false;
}

/* The card remembers the last context, so a new context does not get a number of that one. */
static bool is_free(const struct timeline *card, uint32_t queue) {
    uint32_t leader = card->queue[card->current].leader;
    bool is_current = queue == card->current || queue == leader || queue == card->queue[leader].server;
    return card->queue[queue].id == 0 && !is_current;
}

uint32_t timeline_open(struct timeline *card, uint64_t owner, uint32_t leader) {
    uint32_t queue = 1;
    while (queue < TIMELINE_QUEUES && !is_free(card, queue)) queue++;
    if (queue == TIMELINE_QUEUES) return 0;
    struct timeline_queue *of = &card->queue[queue];
    memset(of, 0, offsetof(struct timeline_queue, barrier));
    of->owner = owner;
    of->leader = leader != 0 ? leader : queue;
    if (!add_channel(card, of->leader, queue)) return 0;
    card->queues_used = card->queues_used > queue ? card->queues_used : queue + 1;
    of->id = ++card->ids;
    return queue;
}

uint32_t timeline_open_server(struct timeline *card, uint64_t owner) {
    uint32_t queue = timeline_open(card, owner, 0);
    if (queue != 0) card->queue[queue].server = queue;
    return queue;
}

void timeline_join(struct timeline *card, uint32_t leader, uint32_t server, uint32_t cap) {
    card->queue[leader].server = server;
    card->queue[leader].cap = cap;
}

void timeline_set_fill(struct timeline *card, uint32_t queue, uint32_t percent) { card->queue[queue].fills = percent; }

static void forget_spins(struct timeline *card, uint32_t queue) {
    struct timeline_queue *of = &card->queue[queue];
    card->spinning -= of->has_begun;
    if (card->begun == queue) card->begun = 0;
    of->spins = of->has_begun = 0;
}

static void close_one(struct timeline *card, uint32_t queue) {
    struct timeline_queue *of = &card->queue[queue];
    of->id = 0;
    card->barriers -= of->barriers;
    of->barriers = 0;
    forget_spins(card, queue);
    struct timeline_queue *leader = &card->queue[of->leader];
    for (uint32_t place = 0; place < TIMELINE_CHANNELS; place++)
        if (leader->channel[place] == queue) leader->channel[place] = 0;
    refresh_pending(card, queue);
}

void timeline_close(struct timeline *card, uint32_t queue) {
    for (uint32_t other = 1; timeline_is_server(card, queue) && other < card->queues_used; other++)
        if (other != queue && card->queue[other].id != 0 && context_of(card, other) == queue) close_one(card, other);
    close_one(card, queue);
}

/* The first pending queue in [from, end); 0 = none. */
static uint32_t first_pending(const struct timeline *card, uint32_t from, uint32_t end) {
    while (from < end) {
        uint64_t rest = card->pending[from / 64] >> from % 64;
        if (rest != 0) {
            from += (uint32_t)__builtin_ctzll(rest);
            return from < end ? from : 0;
        }
        from = (from / 64 + 1) * 64;
    }
    return 0;
}

uint32_t timeline_next(const struct timeline *card, uint32_t after) {
    uint32_t found = first_pending(card, after + 1, card->queues_used);
    return found != 0 ? found : first_pending(card, 1, after + 1);
}

/* The next queue of the next context that has work, which may be the current one; 0 = none. */
static uint32_t next_with_work(struct timeline *card) {
    uint32_t context;
    uint32_t queue = 0;
    while ((context = timeline_next(card, context_of(card, card->current))) != 0 &&
           (queue = queue_due(card, context)) == 0)
        set_pending(card, context, false);
    return queue;
}

/* The queue to work on now; 0 = none. A context whose work runs out loses the rest of its slice. */
static uint32_t due(struct timeline *card) {
    if (card->slice == 0) return next_with_work(card);
    if (timeline_has_work(card, card->current)) return card->current;
    uint32_t other = queue_due(card, context_of(card, card->current));
    return other != 0 ? other : next_with_work(card);
}

/* Lets the queue work, beside other queues of its server. This costs no time, because its context is on the card. */
static void turn_to(struct timeline *card, uint32_t queue) {
    struct timeline_queue *leader = &card->queue[card->queue[queue].leader];
    card->current = queue;
    if (timeline_is_server(card, context_of(card, queue))) return; /* timeline_clients_turn does so for each client */
    for (uint32_t place = 0; place < TIMELINE_CHANNELS; place++)
        if (leader->channel[place] == queue) leader->last = place;
}

static void put_on(struct timeline *card, uint32_t queue) {
    uint32_t former = context_of(card, card->current);
    bool has_left_work = queue_due(card, former) != 0;
    if (former != context_of(card, queue) && card->current != 0)
        card->switching = has_left_work ? TIMELINE_SWITCH_NS : TIMELINE_HANDOVER_NS;
    turn_to(card, queue);
    timeline_clients_turn(card, context_of(card, queue));
    card->slice = TIMELINE_SLICE_NS;
}

/* What is left of the slice after `ns` of work by the only context with work. Its slices continue one after another,
 * and a context that arrives waits for the end of the current one. */
static uint64_t slice_after(uint64_t left, uint64_t ns) {
    uint64_t used = left < TIMELINE_SLICE_NS ? TIMELINE_SLICE_NS - left : 0;
    return TIMELINE_SLICE_NS - (used + ns) % TIMELINE_SLICE_NS;
}

static bool is_open(const struct timeline *card, const struct timeline_barrier *barrier) {
    const struct timeline_queue *other = &card->queue[barrier->queue];
    return other->id != barrier->id || other->done >= barrier->position;
}

static void drop_open_barriers(struct timeline *card, uint32_t queue) {
    struct timeline_queue *of = &card->queue[queue];
    uint32_t open = 0;
    while (open < of->barriers && is_open(card, &of->barrier[open])) open++;
    if (open == 0) return;
    of->barriers -= open;
    card->barriers -= open;
    memmove(of->barrier, of->barrier + open, of->barriers * sizeof *of->barrier);
    refresh_pending(card, queue);
}

static void open_barriers(struct timeline *card) {
    for (uint32_t queue = 1; card->barriers > 0 && queue < card->queues_used; queue++)
        if (card->queue[queue].barriers > 0) drop_open_barriers(card, queue);
}

/* Whether the current queue is the only one on the card that has work. */
static bool is_only_one(const struct timeline *card) {
    uint32_t leader = card->queue[card->current].leader;
    return timeline_next(card, leader) == leader && timeline_channel_due(card, leader) == card->current;
}

/* What follows work of the context on the card. */
static void note_work_done(struct timeline *card, uint32_t context) {
    open_barriers(card);
    if (queue_due(card, context) == 0) {
        set_pending(card, context, false);
        card->slice = 0;
    }
}

static void begin_spin(struct timeline *card) {
    card->queue[card->current].has_begun = 1;
    card->begun = card->current;
    card->spinning++;
}

static void do_work(struct timeline *card, struct timeline_queue *queue, uint64_t ns) {
    timeline_record_run(queue, card->at, TIMELINE_FULL_SPEED);
    queue->done += ns;
}

static void work_alone_until(struct timeline *card, uint64_t now) {
    struct timeline_queue *queue = &card->queue[card->current];
    bool spins = timeline_is_spinning(card, card->current);
    bool is_alone = is_only_one(card);
    uint64_t left = timeline_work_of(card, card->current);
    if (!is_alone && left > card->slice && left <= card->slice + TIMELINE_GRACE_NS) card->slice = left;
    uint64_t ns =
        least(timeline_until_barrier(card, card->current, is_alone ? left : least(left, card->slice)), now - card->at);
    if (!spins) do_work(card, queue, ns);
    card->at += ns;
    queue->ended = card->at;
    card->slice = is_alone ? slice_after(card->slice, ns) : card->slice - ns;
    note_work_done(card, queue->leader);
}

static void work_until(struct timeline *card, uint64_t now) {
    uint32_t context = context_of(card, card->current);
    if (!timeline_is_server(card, context)) {
        work_alone_until(card, now);
    } else {
        timeline_clients_work(card, context, now);
        note_work_done(card, context);
    }
}

static void switch_until(struct timeline *card, uint64_t now) {
    uint64_t ns = least(card->switching, now - card->at);
    card->switching -= ns;
    card->at += ns;
}

static bool is_at_new_spin(const struct timeline *card) {
    return timeline_is_spinning(card, card->current) && !card->queue[card->current].has_begun;
}

void timeline_advance(struct timeline *card, uint64_t now) {
    uint32_t queue;
    open_barriers(card); /* those that wait for a queue which was closed */
    while (card->at < now && card->begun == 0 && (queue = due(card)) != 0) {
        if (card->slice == 0 || context_of(card, queue) != context_of(card, card->current))
            put_on(card, queue);
        else if (queue != card->current)
            turn_to(card, queue);
        if (card->switching > 0)
            switch_until(card, now);
        else if (is_at_new_spin(card))
            begin_spin(card);
        else
            work_until(card, now);
    }
    if (card->begun == 0) card->at = card->at > now ? card->at : now;
}

uint64_t timeline_submit(struct timeline *card, uint32_t queue, uint64_t ns) {
    struct timeline_queue *of = &card->queue[queue];
    of->submitted += ns > 0 ? ns : 1;
    if (timeline_has_work(card, queue)) set_pending(card, context_of(card, queue), true);
    return of->submitted;
}

uint64_t timeline_spin(struct timeline *card, uint32_t queue, uint64_t ns, uint64_t ticket) {
    struct timeline_queue *of = &card->queue[queue];
    if (of->spins == TIMELINE_SPINS) return 0;
    of->spin[of->spins++] = (struct timeline_spin){.from = of->submitted, .ticket = ticket};
    return timeline_submit(card, queue, ns);
}

uint64_t timeline_take_begun(struct timeline *card) {
    uint64_t ticket = card->begun != 0 ? card->queue[card->begun].spin[0].ticket : 0;
    card->begun = 0;
    return ticket;
}

void timeline_release(struct timeline *card, uint32_t queue) {
    struct timeline_queue *of = &card->queue[queue];
    if (!of->has_begun) return;
    of->has_begun = 0;
    card->spinning--;
    of->spins--;
    memmove(of->spin, of->spin + 1, of->spins * sizeof *of->spin);
}

void timeline_hold(struct timeline *card, uint32_t queue, uint64_t position) {
    card->queue[queue].limit = position;
    refresh_pending(card, queue);
}

/* Events behind the barrier have a later position than it, so it is followed by 1 ns of work. */
uint64_t timeline_wait(struct timeline *card, uint32_t queue, uint32_t other, uint64_t position) {
    struct timeline_queue *of = &card->queue[queue];
    struct timeline_barrier barrier = {
        .from = of->submitted, .position = position, .id = card->queue[other].id, .queue = other};
    if (is_open(card, &barrier)) return of->submitted > 0 ? of->submitted : timeline_submit(card, queue, 1);
    if (of->barriers == TIMELINE_BARRIERS) return 0;
    of->barrier[of->barriers++] = barrier;
    card->barriers++;
    return timeline_submit(card, queue, 1);
}

uint64_t timeline_mark(struct timeline *card, uint32_t queue, uint64_t after) {
    struct timeline_queue *of = &card->queue[queue];
    uint64_t position = after > of->done ? after : of->done + 1;
    if (position > of->submitted) timeline_submit(card, queue, position - of->submitted);
    return position;
}

/* The least time in which a context's work that can be done now is done. */
static uint64_t least_time_of(const struct timeline *card, uint32_t context) {
    return timeline_is_server(card, context) ? timeline_clients_least_time(card, context)
                                             : timeline_channels_work(card, context);
}

/* The least time that the contexts before this one in round-robin order take. */
static uint64_t wait_for_others(const struct timeline *card, uint32_t context) {
    uint64_t ns = 0;
    uint32_t current = context_of(card, card->current);
    if (card->slice > 0) ns = card->switching + least(card->slice, least_time_of(card, current));
    for (uint32_t other = timeline_next(card, current); other != context && other != 0;
         other = timeline_next(card, other)) {
        ns += TIMELINE_HANDOVER_NS + least(TIMELINE_SLICE_NS, least_time_of(card, other));
        if (other == current) break;
    }
    return ns + (current != 0 ? TIMELINE_HANDOVER_NS : 0);
}

static uint64_t greatest(uint64_t a, uint64_t b) { return a > b ? a : b; }

static bool is_pending(const struct timeline *card, uint32_t context) {
    return (card->pending[context / 64] >> context % 64 & 1) != 0;
}

/* As if no barrier held the queue back. A context without work that can be done now has no place in the round yet. */
static uint64_t earliest_when_open(const struct timeline *card, uint32_t queue, uint64_t position) {
    const struct timeline_queue *of = &card->queue[queue];
    uint64_t work = position > of->done ? position - of->done : 0;
    uint32_t context = context_of(card, queue);
    bool is_on = context == context_of(card, card->current);
    if (!is_on && !is_pending(card, context)) return card->at + work;
    return card->at + work + (is_on ? card->switching : wait_for_others(card, context));
}

/* A barrier that holds the queue back may wait for a queue that another barrier holds back, and so on; launches of an
 * earlier time hold back later ones only, so the chain ends. */
uint64_t timeline_earliest(const struct timeline *card, uint32_t queue, uint64_t position) {
    const struct timeline_queue *of = &card->queue[queue];
    const struct timeline_barrier *first = of->barrier;
    uint64_t behind = 0;
    uint64_t latest = earliest_when_open(card, queue, position);
    while (of->barriers > 0 && position > first->from) {
        behind += position - greatest(first->from, of->done);
        position = first->position;
        queue = (uint32_t)first->queue;
        of = &card->queue[queue];
        first = of->barrier;
        latest = greatest(latest, earliest_when_open(card, queue, position) + behind);
    }
    return latest;
}
