#include "hardware/timeline.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t work_of(const struct timeline *card, uint32_t queue) {
    const struct timeline_queue *of = &card->queue[queue];
    uint64_t end = of->limit != 0 ? least(of->submitted, of->limit) : of->submitted;
    return of->id != 0 && end > of->done ? end - of->done : 0;
}

bool timeline_has_work(const struct timeline *card, uint32_t queue) { return work_of(card, queue) > 0; }

static void set_pending(struct timeline *card, uint32_t queue, bool pending) {
    uint64_t bit = UINT64_C(1) << queue % 64;
    uint64_t *word = &card->pending[queue / 64];
    *word = pending ? *word | bit : *word & ~bit;
}

uint32_t timeline_open(struct timeline *card, uint64_t owner) {
    for (uint32_t queue = 1; queue < TIMELINE_QUEUES; queue++) {
        struct timeline_queue *of = &card->queue[queue];
        if (of->id != 0 || queue == card->current) /* the card remembers the last context; a new one is not on it */
            continue;
        memset(of, 0, sizeof *of - sizeof of->run);
        of->owner = owner;
        card->queues_used = card->queues_used > queue ? card->queues_used : queue + 1;
        of->id = ++card->ids;
        return queue;
    }
    return 0;
}

void timeline_close(struct timeline *card, uint32_t queue) {
    card->queue[queue].id = 0;
    set_pending(card, queue, false);
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

/* The next queue that has work, which may be the current one; 0 = none. */
static uint32_t next_with_work(struct timeline *card) {
    uint32_t queue;
    while ((queue = timeline_next(card, card->current)) != 0 && !timeline_has_work(card, queue))
        set_pending(card, queue, false);
    return queue;
}

/* The queue to work on now; 0 = none. A context whose work runs out loses the rest of its slice. */
static uint32_t due(struct timeline *card) {
    bool stays = card->slice > 0 && timeline_has_work(card, card->current);
    return stays ? card->current : next_with_work(card);
}

static void put_on(struct timeline *card, uint32_t queue) {
    if (queue != card->current && card->current != 0)
        card->switching = timeline_has_work(card, card->current) ? TIMELINE_SWITCH_NS : TIMELINE_HANDOVER_NS;
    card->current = queue;
    card->slice = TIMELINE_SLICE_NS;
}

static struct timeline_run *run_of(struct timeline_queue *queue, uint64_t number) {
    return &queue->run[number % TIMELINE_RUNS];
}

static void record_run(struct timeline_queue *queue, uint64_t at) {
    const struct timeline_run *last = run_of(queue, queue->runs - 1);
    if (queue->runs == 0 || last->at + (queue->done - last->from) != at) {
        *run_of(queue, queue->runs) = (struct timeline_run){.from = queue->done, .at = at};
        queue->runs++;
    }
}

/* What is left of the slice after `ns` of work by the only context with work. Its slices continue one after another,
 * and a context that arrives waits for the end of the current one. */
static uint64_t slice_after(uint64_t left, uint64_t ns) {
    uint64_t used = left < TIMELINE_SLICE_NS ? TIMELINE_SLICE_NS - left : 0;
    return TIMELINE_SLICE_NS - (used + ns) % TIMELINE_SLICE_NS;
}

static void work_until(struct timeline *card, uint64_t now) {
    struct timeline_queue *queue = &card->queue[card->current];
    bool is_alone = timeline_next(card, card->current) == card->current;
    uint64_t left = work_of(card, card->current);
    if (!is_alone && left > card->slice && left <= card->slice + TIMELINE_GRACE_NS) card->slice = left;
    uint64_t ns = least(is_alone ? left : least(left, card->slice), now - card->at);
    record_run(queue, card->at);
    queue->done += ns;
    card->at += ns;
    queue->ended = card->at;
    card->slice = is_alone ? slice_after(card->slice, ns) : card->slice - ns;
    if (work_of(card, card->current) == 0) {
        set_pending(card, card->current, false);
        card->slice = 0;
    }
}

static void switch_until(struct timeline *card, uint64_t now) {
    uint64_t ns = least(card->switching, now - card->at);
    card->switching -= ns;
    card->at += ns;
}

void timeline_advance(struct timeline *card, uint64_t now) {
    uint32_t queue;
    while (card->at < now && (queue = due(card)) != 0) {
        if (queue != card->current || card->slice == 0) put_on(card, queue);
        if (card->switching > 0)
            switch_until(card, now);
        else
            work_until(card, now);
    }
    card->at = card->at > now ? card->at : now;
}

uint64_t timeline_submit(struct timeline *card, uint32_t queue, uint64_t ns) {
    struct timeline_queue *of = &card->queue[queue];
    of->submitted += ns > 0 ? ns : 1;
    set_pending(card, queue, true);
    return of->submitted;
}

void timeline_hold(struct timeline *card, uint32_t queue, uint64_t position) {
    card->queue[queue].limit = position;
    set_pending(card, queue, timeline_has_work(card, queue));
}

uint64_t timeline_mark(struct timeline *card, uint32_t queue, uint64_t after) {
    struct timeline_queue *of = &card->queue[queue];
    uint64_t position = after > of->done ? after : of->done + 1;
    if (position > of->submitted) timeline_submit(card, queue, position - of->submitted);
    return position;
}

uint64_t timeline_passed(const struct timeline *card, uint32_t queue, uint64_t position) {
    const struct timeline_queue *of = &card->queue[queue];
    uint64_t kept = least(of->runs, TIMELINE_RUNS);
    if (position > of->done || kept == 0) return kept == 0 && position == 0 ? card->at : 0;
    const struct timeline_run *run = NULL;
    for (uint64_t back = 1; back <= kept; back++) {
        run = &of->run[(of->runs - back) % TIMELINE_RUNS];
        if (run->from < position) return run->at + (position - run->from);
    }
    return run->at;
}

/* The least time that the queues before this one in round-robin order take. */
static uint64_t wait_for_others(const struct timeline *card, uint32_t queue) {
    uint64_t ns = 0;
    uint32_t current = card->current;
    if (card->slice > 0) ns = card->switching + least(card->slice, work_of(card, current));
    for (uint32_t other = timeline_next(card, current); other != queue && other != 0;
         other = timeline_next(card, other)) {
        ns += TIMELINE_HANDOVER_NS + least(TIMELINE_SLICE_NS, work_of(card, other));
        if (other == current) break;
    }
    return ns + (current != 0 ? TIMELINE_HANDOVER_NS : 0);
}

uint64_t timeline_earliest(const struct timeline *card, uint32_t queue, uint64_t position) {
    const struct timeline_queue *of = &card->queue[queue];
    uint64_t work = position > of->done ? position - of->done : 0;
    bool is_on = queue == card->current;
    return card->at + work + (is_on ? card->switching : wait_for_others(card, queue));
}
