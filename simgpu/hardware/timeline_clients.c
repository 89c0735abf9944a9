#include "hardware/timeline_clients.h"

/* A client that has work. */
struct worker {
    uint32_t queue;
    uint64_t fills; /* percent of the multiprocessors */
    uint64_t uses;  /* of these, what its cap leaves, 1 or more */
    uint64_t stretch;
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

bool timeline_is_server(const struct timeline *card, uint32_t queue) {
    return queue != 0 && card->queue[queue].server == queue;
}

static bool is_client(const struct timeline *card, uint32_t queue, uint32_t server) {
    const struct timeline_queue *of = &card->queue[queue];
    return of->leader == queue && of->server == server && queue != server;
}

uint32_t timeline_client_due(const struct timeline *card, uint32_t server) {
    uint32_t found = 0;
    for (uint32_t queue = 1; queue < card->queues_used && found == 0; queue++)
        if (is_client(card, queue, server)) found = timeline_channel_due(card, queue);
    return found;
}

uint64_t timeline_clients_least_time(const struct timeline *card, uint32_t server) {
    uint64_t longest = 0;
    for (uint32_t queue = 1; queue < card->queues_used; queue++) {
        uint64_t ns = is_client(card, queue, server) ? timeline_channels_work(card, queue) : 0;
        longest = ns > longest ? ns : longest;
    }
    return longest;
}

static void turn_client(struct timeline *card, uint32_t leader) {
    uint32_t queue = timeline_channel_due(card, leader);
    for (uint32_t place = 0; place < TIMELINE_CHANNELS && queue != 0; place++)
        if (card->queue[leader].channel[place] == queue) card->queue[leader].last = place;
}

void timeline_clients_turn(struct timeline *card, uint32_t server) {
    for (uint32_t queue = 1; timeline_is_server(card, server) && queue < card->queues_used; queue++)
        if (is_client(card, queue, server)) turn_client(card, queue);
}

/* Finds the clients with work, and how long a thousand ns of it take beside each other. */
static uint32_t find_workers(const struct timeline *card, uint32_t server, struct worker out[TIMELINE_CLIENTS]) {
    uint32_t count = 0;
    uint64_t total = 0;
    for (uint32_t leader = 1; leader < card->queues_used && count < TIMELINE_CLIENTS; leader++) {
        uint32_t queue = is_client(card, leader, server) ? timeline_channel_due(card, leader) : 0;
        if (queue == 0) continue;
        uint64_t fills = card->queue[queue].fills != 0 ? card->queue[queue].fills : 100;
        uint64_t uses = least(fills, card->queue[leader].cap);
        uses = uses > 0 ? uses : 1;
        out[count++] = (struct worker){.queue = queue, .fills = fills, .uses = uses};
        total += uses;
    }
    for (uint32_t i = 0; i < count; i++)
        out[i].stretch = TIMELINE_FULL_SPEED * out[i].fills * (total > 100 ? total : 100) / (out[i].uses * 100);
    return count;
}

/* The time until the worker has done `work`. */
static uint64_t time_for(const struct worker *worker, uint64_t work, uint64_t carry) {
    uint64_t spent = least(carry, work * worker->stretch - 1);
    return (work * worker->stretch - spent + TIMELINE_FULL_SPEED - 1) / TIMELINE_FULL_SPEED;
}

static void work_for(struct timeline_queue *queue, const struct worker *worker, uint64_t left, uint64_t ns) {
    uint64_t spent = ns * TIMELINE_FULL_SPEED + queue->carry;
    uint64_t work = least(left, spent / worker->stretch);
    queue->done += work;
    queue->carry = (uint32_t)(work < left ? spent % worker->stretch : 0);
}

void timeline_clients_work(struct timeline *card, uint32_t server, uint64_t now) {
    struct worker worker[TIMELINE_CLIENTS];
    uint32_t count = find_workers(card, server, worker);
    uint64_t ns = least(now - card->at, card->slice);
    uint64_t most = ns;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t left = timeline_until_barrier(card, worker[i].queue, timeline_work_of(card, worker[i].queue));
        ns = least(ns, time_for(&worker[i], least(left, most), card->queue[worker[i].queue].carry));
    }
    for (uint32_t i = 0; i < count; i++) {
        struct timeline_queue *queue = &card->queue[worker[i].queue];
        timeline_record_run(queue, card->at, worker[i].stretch);
        work_for(queue, &worker[i], timeline_work_of(card, worker[i].queue), ns);
        queue->ended = card->at + ns;
    }
    card->at += ns;
    card->slice -= ns;
}
