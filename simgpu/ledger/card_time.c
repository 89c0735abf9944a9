#include "ledger/card_time.h"

#include "hardware/clock.h"
#include "hardware/timeline.h"
#include "ledger/attach.h"
#include "ledger/card_lock.h"
#include "ledger/collectives.h"
#include "ledger/state.h"

#define CHECK_EVERY_NS UINT64_C(1000000) /* search for dead processes */
#define STEP_NS        UINT64_C(10000)   /* the end of a collective is late by this much at most */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void close_queues_of(struct timeline *timeline, uint64_t owner) {
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++)
        if (timeline->queue[queue].id != 0 && timeline->queue[queue].owner == owner) timeline_close(timeline, queue);
}

/* Closes the queues of dead processes: those with work, which delay other contexts, and those of servers, whose clients
 * may have work; or idle ones too. */
static void close_queues_of_dead(struct timeline *timeline, bool idle_too) {
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++) {
        const struct timeline_queue *of = &timeline->queue[queue];
        bool is_checked = of->id != 0 && (idle_too || of->server == queue || timeline_has_work(timeline, queue));
        if (is_checked && !slot_is_alive((int)of->owner)) timeline_close(timeline, queue);
    }
}

static void close_if_due(struct card_time *card, uint64_t now) {
    if (now <= card->checked_at + CHECK_EVERY_NS) return;
    card->checked_at = now;
    close_queues_of_dead(&card->timeline, false);
}

static void lock_all(int cards) {
    for (int card = 0; card < cards; card++) card_lock(&state->time[card]);
}

/* Keeps the lock of the card `kept`; -1 = of none. */
static void unlock_all(int cards, int kept) {
    for (int card = 0; card < cards; card++)
        if (card != kept) card_unlock(&state->time[card]);
}

/* The card that is furthest behind `now`, and the time of the next one; -1 = none is behind. */
static int last_card(int cards, uint64_t now, uint64_t *next) {
    int last = -1;
    uint64_t at = now;
    *next = now;
    for (int card = 0; card < cards; card++) {
        uint64_t of = state->time[card].timeline.at;
        if (of < at) {
            *next = at;
            at = of;
            last = card;
        } else if (of < *next) {
            *next = of;
        }
    }
    return last;
}

/* Brings all cards up to `now`. Where a kernel spins, a card is at most a step ahead of the others. */
static void advance_together(int cards, uint64_t now) {
    uint64_t next;
    for (int card; (card = last_card(cards, now, &next)) >= 0;) {
        struct timeline *timeline = &state->time[card].timeline;
        timeline_advance(timeline, timeline->spinning > 0 ? least(now, next + STEP_NS) : now);
        uint64_t ticket = timeline_take_begun(timeline);
        if (ticket != 0) collective_note_begun(ticket);
    }
}

/* Locks the time lines of all cards that were used and of this one, and brings them up to now; returns how many. */
static int enter_all(int card) {
    int used = (int)__atomic_load_n(&state->cards, __ATOMIC_ACQUIRE), cards = used > card ? used : card + 1;
    lock_all(cards);
    uint64_t now = clock_now_ns();
    for (int i = 0; i < cards; i++) close_if_due(&state->time[i], now);
    collectives_drop_ended();
    advance_together(cards, now);
    return cards;
}

/* Locks the card's time line and brings it up to now. The variable that the result is stored in is declared HELD_CARD,
 * so that the time line is unlocked at the end of the enclosing block. Collectives begin while all cards are locked. */
static struct card_time *enter(int card) {
    struct card_time *time = &state->time[card];
    card_lock(time);
    if (collectives_are_any()) {
        card_unlock(time);
        unlock_all(enter_all(card), card);
        return time;
    }
    uint64_t now = clock_now_ns();
    close_if_due(time, now);
    timeline_advance(&time->timeline, now);
    return time;
}

static void leave(struct card_time **time) { card_unlock(*time); }

#define HELD_CARD __attribute__((cleanup(leave)))

void card_time_forget(uint32_t slot) {
    for (int card = 0; card < LEDGER_CARDS; card++) {
        if (state->time[card].timeline.queues_used > 0) {
            HELD_CARD struct card_time *time = enter(card);
            close_queues_of(&time->timeline, slot);
        }
    }
}

static bool is_open(const struct timeline *timeline, struct card_queue queue) {
    return timeline->queue[queue.number].id == queue.id;
}

static int add_card(const char *uuid) {
    HOLD_STATE();
    return card_index_or_add(uuid);
}

/* The queue that stands for a server on the card, opened when it is the first client's; 0 = there is no room. */
static uint32_t queue_of_server(struct timeline *timeline, uint64_t slot) {
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++) {
        const struct timeline_queue *of = &timeline->queue[queue];
        if (of->id != 0 && of->server == queue && of->owner == slot) return queue;
    }
    return timeline_open_server(timeline, slot);
}

/* Makes a new context one of the server that this process is a client of, if it is one. */
static bool join_server(struct timeline *timeline, uint32_t leader) {
    const struct slot *own = &state->slot[own_slot];
    if (own->server == 0) return true;
    const struct mps_server *server = &state->mps_server[own->server % MPS_SERVERS];
    bool is_alive = server->id == own->server && slot_is_alive((int)server->slot);
    uint32_t queue = is_alive ? queue_of_server(timeline, server->slot) : 0;
    if (queue != 0)
        timeline_join(timeline, leader, queue, (uint32_t)own->percentage);
    else
        timeline_close(timeline, leader);
    return queue != 0;
}

bool card_queue_open(const char *uuid, uint32_t leader, struct card_queue *out) {
    int card = add_card(uuid);
    if (card < 0) return false;
    HELD_CARD struct card_time *time = enter(card);
    uint32_t number = timeline_open(&time->timeline, (uint64_t)own_slot, leader);
    if (number == 0) {
        close_queues_of_dead(&time->timeline, true);
        number = timeline_open(&time->timeline, (uint64_t)own_slot, leader);
    }
    if (number != 0 && leader == 0 && !join_server(&time->timeline, number)) return false;
    *out = (struct card_queue){.card = card, .number = number, .id = time->timeline.queue[number].id};
    return number != 0;
}

void card_queue_close(struct card_queue queue) {
    HELD_CARD struct card_time *time = enter(queue.card);
    if (is_open(&time->timeline, queue)) timeline_close(&time->timeline, queue.number);
}

uint64_t card_queue_add(struct card_queue queue, uint64_t ns, uint32_t fills, uint64_t *runs) {
    HELD_CARD struct card_time *time = enter(queue.card);
    *runs = 0;
    if (!is_open(&time->timeline, queue)) return 1; /* after a fault */
    timeline_set_fill(&time->timeline, queue.number, fills);
    uint64_t position = timeline_submit(&time->timeline, queue.number, ns);
    *runs = time->timeline.queue[queue.number].runs;
    return position;
}

/* A client of an MPS server has no spins. */
static uint64_t join_collective(struct card_queue queue, struct collective_key key, uint64_t ns) {
    struct timeline *timeline = &state->time[queue.card].timeline;
    if (!is_open(timeline, queue)) return 1; /* after a fault */
    if (timeline->queue[timeline->queue[queue.number].leader].server != 0)
        return timeline_submit(timeline, queue.number, ns);
    if (timeline->queue[queue.number].spins == TIMELINE_SPINS) return 0;
    uint64_t ticket = collective_join(key, queue);
    return ticket != 0 ? timeline_spin(timeline, queue.number, ns, ticket) : 0;
}

uint64_t card_queue_collective(struct card_queue queue, struct collective_key key, uint64_t ns) {
    int cards = enter_all(queue.card);
    uint64_t position = join_collective(queue, key, ns);
    unlock_all(cards, -1);
    return position;
}

uint64_t card_queue_mark(struct card_queue queue, uint64_t after) {
    HELD_CARD struct card_time *time = enter(queue.card);
    return timeline_mark(&time->timeline, queue.number, after);
}

uint64_t card_queue_wait(struct card_queue queue, struct card_queue other, uint64_t position) {
    HELD_CARD struct card_time *time = enter(queue.card);
    struct timeline *timeline = &time->timeline;
    bool is_passed = !is_open(timeline, other);
    return timeline_wait(timeline, queue.number, other.number, is_passed ? 0 : position);
}

void card_queue_hold(struct card_queue queue, uint64_t position) {
    HELD_CARD struct card_time *time = enter(queue.card);
    if (is_open(&time->timeline, queue)) timeline_hold(&time->timeline, queue.number, position);
}

uint64_t card_queue_passed(struct card_queue queue, uint64_t position, uint64_t *earliest) {
    HELD_CARD struct card_time *time = enter(queue.card);
    const struct timeline *timeline = &time->timeline;
    uint64_t at = is_open(timeline, queue) ? timeline_passed(timeline, queue.number, position) : timeline->at;
    *earliest =
        at != 0 ? at : least(timeline_earliest(timeline, queue.number, position), timeline->at + CHECK_EVERY_NS * 10);
    return at;
}

static bool has_work(const struct timeline *timeline) {
    bool found = false;
    for (uint32_t queue = 1; queue < timeline->queues_used && !found; queue++)
        found = timeline_has_work(timeline, queue);
    return found;
}

bool card_is_busy(const char *uuid) {
    int card = ledger_attach() == 0 ? card_index(uuid) : -1;
    if (card < 0) return false;
    HELD_CARD struct card_time *time = enter(card);
    return has_work(&time->timeline);
}

/* A process may have several queues: the latest time counts. */
void card_time_publish(int card) {
    HELD_CARD struct card_time *time = enter(card);
    const struct timeline *timeline = &time->timeline;
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++)
        state->slot[timeline->queue[queue].owner].busy_until[card] = 0;
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++) {
        const struct timeline_queue *of = &timeline->queue[queue];
        uint64_t until = timeline_has_work(timeline, queue) ? UINT64_MAX : of->ended;
        uint64_t *busy_until = &state->slot[of->owner].busy_until[card];
        if (of->id != 0 && until > *busy_until) __atomic_store_n(busy_until, until, __ATOMIC_RELAXED);
    }
}
