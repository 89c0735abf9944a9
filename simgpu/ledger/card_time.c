#include "ledger/card_time.h"

#include "hardware/clock.h"
#include "hardware/timeline.h"
#include "ledger/attach.h"
#include "ledger/state.h"

#include <time.h>

#define OWNER_BITS     16
#define OWNER_MASK     ((UINT64_C(1) << OWNER_BITS) - 1)
#define OWNER_NO_SLOT  OWNER_MASK /* a process that reads without a slot */
#define SPINS          200
#define CHECK_EVERY_NS UINT64_C(1000000)   /* search for dead processes */
#define LOST_AFTER_NS  UINT64_C(100000000) /* a process holds the lock for so long only while it is stopped */
#define LOCK_SLEEP_NS  20000

_Static_assert(SLOTS < OWNER_NO_SLOT, "a slot fits the lock's word");

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t own_name(void) { return own_slot >= 0 ? (uint64_t)own_slot + 1 : OWNER_NO_SLOT; }

/* Whether the lock may be taken from its holder: the holder is dead, or has been seen since `since_ns` for too long. */
static bool is_lost(uint64_t word, uint64_t since_ns) {
    uint64_t owner = word & OWNER_MASK;
    bool dead = owner != OWNER_NO_SLOT && !slot_is_alive((int)owner - 1);
    return dead || clock_now_ns() > since_ns + LOST_AFTER_NS;
}

/* Takes a lock that is free or lost, unless its word has changed. */
static bool take(CardTime *card, uint64_t word) {
    uint64_t mine = (word & ~OWNER_MASK) | own_name();
    return __atomic_compare_exchange_n(&card->lock, &word, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void sleep_until_taken(CardTime *card) {
    static const struct timespec nap = {.tv_nsec = LOCK_SLEEP_NS};
    uint64_t since_ns = clock_now_ns();
    uint64_t seen = __atomic_load_n(&card->lock, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t word = __atomic_load_n(&card->lock, __ATOMIC_RELAXED);
        if (word != seen) {
            seen = word;
            since_ns = clock_now_ns();
        }
        bool is_free = (word & OWNER_MASK) == 0 || is_lost(word, since_ns);
        if (is_free && take(card, word)) {
            return;
        }
        (void)nanosleep(&nap, NULL);
    }
}

static void lock_card(CardTime *card) {
    for (int i = 0; i < SPINS; i++) {
        uint64_t word = __atomic_load_n(&card->lock, __ATOMIC_RELAXED);
        if ((word & OWNER_MASK) == 0 && take(card, word)) {
            return;
        }
        __builtin_ia32_pause();
    }
    sleep_until_taken(card);
}

/* Does nothing for a process that lost the lock while it was stopped. */
static void unlock_card(CardTime *card) {
    uint64_t word = __atomic_load_n(&card->lock, __ATOMIC_RELAXED);
    if ((word & OWNER_MASK) == own_name()) {
        uint64_t next = (word & ~OWNER_MASK) + OWNER_MASK + 1;
        (void)__atomic_compare_exchange_n(&card->lock, &word, next, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

static void close_queues_of(Timeline *timeline, uint64_t owner) {
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++) {
        if (timeline->queue[queue].id != 0 && timeline->queue[queue].owner == owner) {
            timeline_close(timeline, queue);
        }
    }
}

/* Closes the queues of dead processes: those with work, which delay other contexts, or idle ones too. */
static void close_queues_of_dead(Timeline *timeline, bool idle_too) {
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++) {
        bool checked = timeline_has_work(timeline, queue) || (idle_too && timeline->queue[queue].id != 0);
        if (checked && !slot_is_alive((int)timeline->queue[queue].owner)) {
            timeline_close(timeline, queue);
        }
    }
}

/* Locks the card's time line and brings it up to now; `leave` unlocks it. */
static Timeline *enter(int card) {
    CardTime *time = &state->time[card];
    lock_card(time);
    uint64_t now = clock_now_ns();
    if (now > time->checked_at + CHECK_EVERY_NS) {
        time->checked_at = now;
        close_queues_of_dead(&time->timeline, false);
    }
    timeline_advance(&time->timeline, now);
    return &time->timeline;
}

static void leave(int card) { unlock_card(&state->time[card]); }

void card_time_forget(uint32_t slot) {
    for (int card = 0; card < LEDGER_CARDS; card++) {
        if (state->time[card].timeline.queues_used > 0) {
            close_queues_of(enter(card), slot);
            leave(card);
        }
    }
}

static bool is_open(const Timeline *timeline, CardQueue queue) { return timeline->queue[queue.number].id == queue.id; }

bool card_queue_open(const char *uuid, CardQueue *out) {
    state_lock();
    int card = card_index_or_add(uuid);
    state_unlock();
    if (card < 0) {
        return false;
    }
    Timeline *timeline = enter(card);
    uint32_t number = timeline_open(timeline, (uint64_t)own_slot);
    if (number == 0) {
        close_queues_of_dead(timeline, true);
        number = timeline_open(timeline, (uint64_t)own_slot);
    }
    *out = (CardQueue){.card = card, .number = number, .id = timeline->queue[number].id};
    leave(card);
    return number != 0;
}

void card_queue_close(CardQueue queue) {
    Timeline *timeline = enter(queue.card);
    if (is_open(timeline, queue)) {
        timeline_close(timeline, queue.number);
    }
    leave(queue.card);
}

uint64_t card_queue_add(CardQueue queue, uint64_t ns, uint64_t *runs) {
    Timeline *timeline = enter(queue.card);
    uint64_t position = timeline_submit(timeline, queue.number, ns);
    *runs = timeline->queue[queue.number].runs;
    leave(queue.card);
    return position;
}

uint64_t card_queue_mark(CardQueue queue, uint64_t after) {
    uint64_t position = timeline_mark(enter(queue.card), queue.number, after);
    leave(queue.card);
    return position;
}

void card_queue_hold(CardQueue queue, uint64_t position) {
    Timeline *timeline = enter(queue.card);
    if (is_open(timeline, queue)) {
        timeline_hold(timeline, queue.number, position);
    }
    leave(queue.card);
}

uint64_t card_queue_passed(CardQueue queue, uint64_t position, uint64_t *earliest) {
    const Timeline *timeline = enter(queue.card);
    uint64_t at = is_open(timeline, queue) ? timeline_passed(timeline, queue.number, position) : timeline->at;
    *earliest =
        at != 0 ? at : least(timeline_earliest(timeline, queue.number, position), timeline->at + CHECK_EVERY_NS * 10);
    leave(queue.card);
    return at;
}

static bool has_work(const Timeline *timeline) {
    bool found = false;
    for (uint32_t queue = 1; queue < timeline->queues_used && !found; queue++) {
        found = timeline_has_work(timeline, queue);
    }
    return found;
}

bool card_is_busy(const char *uuid) {
    int card = ledger_attach() == 0 ? card_index(uuid) : -1;
    bool busy = card >= 0 && has_work(enter(card));
    if (card >= 0) {
        leave(card);
    }
    return busy;
}

/* A process may have several queues: the latest time counts. */
void card_time_publish(int card) {
    const Timeline *timeline = enter(card);
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++) {
        state->slot[timeline->queue[queue].owner].busy_until[card] = 0;
    }
    for (uint32_t queue = 1; queue < timeline->queues_used; queue++) {
        const TimelineQueue *of = &timeline->queue[queue];
        uint64_t until = timeline_has_work(timeline, queue) ? UINT64_MAX : of->ended;
        uint64_t *busy_until = &state->slot[of->owner].busy_until[card];
        if (of->id != 0 && until > *busy_until) {
            __atomic_store_n(busy_until, until, __ATOMIC_RELAXED);
        }
    }
    leave(card);
}
