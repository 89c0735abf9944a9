#include "hardware/timeline_queue.h"

#include <stddef.h>

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The position up to which nothing but a spin holds the queue's work back. */
static uint64_t open_until(const struct timeline_queue *of) {
    uint64_t end = of->limit != 0 ? least(of->submitted, of->limit) : of->submitted;
    return of->barriers > 0 ? least(end, of->barrier[0].from) : end;
}

bool timeline_is_spinning(const struct timeline *card, uint32_t queue) {
    const struct timeline_queue *of = &card->queue[queue];
    bool is_at_spin = of->spins > 0 && of->done >= of->spin[0].from;
    return of->id != 0 && is_at_spin && open_until(of) > of->done;
}

uint64_t timeline_work_of(const struct timeline *card, uint32_t queue) {
    const struct timeline_queue *of = &card->queue[queue];
    if (timeline_is_spinning(card, queue)) return TIMELINE_SPIN_NS;
    uint64_t end = of->spins > 0 ? least(open_until(of), of->spin[0].from) : open_until(of);
    return of->id != 0 && end > of->done ? end - of->done : 0;
}

uint32_t timeline_channel_due(const struct timeline *card, uint32_t leader) {
    const struct timeline_queue *of = &card->queue[leader];
    for (uint32_t next = 1; next <= TIMELINE_CHANNELS; next++) {
        uint32_t queue = of->channel[(of->last + next) % TIMELINE_CHANNELS];
        if (queue != 0 && timeline_work_of(card, queue) > 0) return queue;
    }
    return 0;
}

uint64_t timeline_channels_work(const struct timeline *card, uint32_t leader) {
    uint64_t ns = 0;
    for (uint32_t place = 0; place < TIMELINE_CHANNELS; place++)
        ns += timeline_work_of(card, card->queue[leader].channel[place]);
    return ns;
}

uint64_t timeline_until_barrier(const struct timeline *card, uint32_t queue, uint64_t ns) {
    const struct timeline_queue *of = &card->queue[queue];
    for (uint32_t other = 1; card->barriers > 0 && other < card->queues_used; other++) {
        const struct timeline_barrier *first = card->queue[other].barrier;
        bool is_waiting = card->queue[other].barriers > 0 && first->queue == queue;
        if (is_waiting && first->position > of->done) ns = least(ns, first->position - of->done);
    }
    return ns;
}

static struct timeline_run *run_of(struct timeline_queue *queue, uint64_t number) {
    return &queue->run[number % TIMELINE_RUNS];
}

static uint64_t time_in(const struct timeline_run *run, uint64_t position) {
    uint64_t work = position - run->from;
    return run->at + (work * run->stretch + TIMELINE_FULL_SPEED - 1) / TIMELINE_FULL_SPEED;
}

/* A ns of work that is stretched ends up to that long after the time which is counted in whole ns. */
static bool continues(const struct timeline_run *last, uint64_t position, uint64_t at, uint64_t stretch) {
    uint64_t slack = stretch == TIMELINE_FULL_SPEED ? 0 : stretch / TIMELINE_FULL_SPEED + 1;
    uint64_t expected = time_in(last, position);
    return last->stretch == stretch && at <= expected + slack && expected <= at + slack;
}

void timeline_record_run(struct timeline_queue *queue, uint64_t at, uint64_t stretch) {
    if (queue->runs == 0 || !continues(run_of(queue, queue->runs - 1), queue->done, at, stretch)) {
        *run_of(queue, queue->runs) = (struct timeline_run){.from = queue->done, .at = at, .stretch = stretch};
        queue->runs++;
    }
}

uint64_t timeline_passed(const struct timeline *card, uint32_t queue, uint64_t position) {
    const struct timeline_queue *of = &card->queue[queue];
    uint64_t kept = least(of->runs, TIMELINE_RUNS);
    if (position > of->done || kept == 0) return kept == 0 && position == 0 ? card->at : 0;
    const struct timeline_run *run = NULL;
    for (uint64_t back = 1; back <= kept; back++) {
        run = &of->run[(of->runs - back) % TIMELINE_RUNS];
        if (run->from < position) return time_in(run, position);
    }
    return run->at;
}
