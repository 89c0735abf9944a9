/* The cards' time in the ledger: who may change a card's timeline when, and whose work is gone with its process. Nobody
 * keeps it going: whoever looks brings it up to now. */
#define _GNU_SOURCE
#include "ledger.h"

#include <time.h>

#define OWNER_BITS    16
#define OWNER_MASK    ((UINT64_C(1) << OWNER_BITS) - 1)
#define READER        OWNER_MASK /* has the lock and no slot */
#define TRIES         200
#define LOOK_NS       UINT64_C(1000000)   /* how old the news of a death may be */
#define STOPPED_NS    UINT64_C(100000000) /* nobody needs the lock so long unless it is stopped */
#define LOCK_SLEEP_NS 20000

_Static_assert(SLOTS < READER, "a slot fits the lock's word");

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t own_name(void) { return own_slot >= 0 ? (uint64_t)own_slot + 1 : READER; }

static bool is_lost(uint64_t word, uint64_t since) {
    uint64_t owner = word & OWNER_MASK;
    bool dead = owner != READER && !ledger_alive((int)owner - 1);
    return dead || now_ns() > since + STOPPED_NS;
}

/* The word is 0 or of a holder that is lost. */
static bool take(uint64_t *lock, uint64_t word) {
    uint64_t mine = (word & ~OWNER_MASK) | own_name();
    return __atomic_compare_exchange_n(lock, &word, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void wait_for(uint64_t *lock) {
    static const struct timespec nap = {.tv_nsec = LOCK_SLEEP_NS};
    uint64_t since = now_ns();
    uint64_t first = __atomic_load_n(lock, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t word = __atomic_load_n(lock, __ATOMIC_RELAXED);
        if (word != first) {
            first = word;
            since = now_ns();
        }
        bool is_free = (word & OWNER_MASK) == 0 || is_lost(word, since);
        if (is_free && take(lock, word)) {
            return;
        }
        (void)nanosleep(&nap, NULL);
    }
}

static void lock_card(uint64_t *lock) {
    for (int i = 0; i < TRIES; i++) {
        uint64_t word = __atomic_load_n(lock, __ATOMIC_RELAXED);
        if ((word & OWNER_MASK) == 0 && take(lock, word)) {
            return;
        }
        __builtin_ia32_pause();
    }
    wait_for(lock);
}

/* Of a holder that was stopped and is no longer the holder, nothing. */
static void unlock_card(uint64_t *lock) {
    uint64_t word = __atomic_load_n(lock, __ATOMIC_RELAXED);
    if ((word & OWNER_MASK) == own_name()) {
        uint64_t next = (word & ~OWNER_MASK) + OWNER_MASK + 1;
        (void)__atomic_compare_exchange_n(lock, &word, next, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

static void close_of(Timeline *card, uint64_t owner) {
    for (uint32_t queue = 1; queue < card->high; queue++) {
        if (card->queue[queue].id != 0 && card->queue[queue].owner == owner) {
            timeline_close(card, queue);
        }
    }
}

/* Only those with work are in the way of others. */
static void close_dead(Timeline *card, bool idle_too) {
    for (uint32_t queue = 1; queue < card->high; queue++) {
        bool asked = timeline_has_work(card, queue) || (idle_too && card->queue[queue].id != 0);
        if (asked && !ledger_alive((int)card->queue[queue].owner)) {
            timeline_close(card, queue);
        }
    }
}

/* The card's timeline as it is now, until `leave`. */
static Timeline *enter(int place) {
    CardTime *card = &state->time[place];
    lock_card(&card->lock);
    uint64_t now = now_ns();
    if (now > card->looked + LOOK_NS) {
        card->looked = now;
        close_dead(&card->timeline, false);
    }
    timeline_advance(&card->timeline, now);
    return &card->timeline;
}

static void leave(int place) { unlock_card(&state->time[place].lock); }

void time_forget(uint32_t slot) {
    for (int place = 0; place < CARDS; place++) {
        if (state->time[place].timeline.high > 0) {
            close_of(enter(place), slot);
            leave(place);
        }
    }
}

static bool is_there(const Timeline *card, SimQueue queue) { return card->queue[queue.number].id == queue.id; }

bool ledger_queue_open(const char *uuid, SimQueue *out) {
    ledger_enter();
    int place = ledger_place(uuid);
    ledger_leave();
    if (place < 0) {
        return false;
    }
    Timeline *card = enter(place);
    uint32_t number = timeline_open(card, (uint64_t)own_slot);
    if (number == 0) {
        close_dead(card, true);
        number = timeline_open(card, (uint64_t)own_slot);
    }
    *out = (SimQueue){.place = place, .number = number, .id = card->queue[number].id};
    leave(place);
    return number != 0;
}

void ledger_queue_close(SimQueue queue) {
    Timeline *card = enter(queue.place);
    if (is_there(card, queue)) {
        timeline_close(card, queue.number);
    }
    leave(queue.place);
}

uint64_t ledger_queue_add(SimQueue queue, uint64_t ns, uint64_t *runs) {
    Timeline *card = enter(queue.place);
    uint64_t position = timeline_submit(card, queue.number, ns);
    *runs = card->queue[queue.number].runs;
    leave(queue.place);
    return position;
}

uint64_t ledger_queue_mark(SimQueue queue, uint64_t after) {
    uint64_t position = timeline_mark(enter(queue.place), queue.number, after);
    leave(queue.place);
    return position;
}

uint64_t ledger_queue_passed(SimQueue queue, uint64_t position, uint64_t *earliest) {
    const Timeline *card = enter(queue.place);
    uint64_t at = is_there(card, queue) ? timeline_passed(card, queue.number, position) : card->at;
    *earliest = at != 0 ? at : least(timeline_earliest(card, queue.number, position), card->at + LOOK_NS * 10);
    leave(queue.place);
    return at;
}

static bool any_has_work(const Timeline *card) {
    bool found = false;
    for (uint32_t queue = 1; queue < card->high && !found; queue++) {
        found = timeline_has_work(card, queue);
    }
    return found;
}

bool ledger_is_busy(const char *uuid) {
    int place = ledger_attached() == 0 ? ledger_place_of(uuid) : -1;
    bool busy = place >= 0 && any_has_work(enter(place));
    if (place >= 0) {
        leave(place);
    }
    return busy;
}

/* The later of what its queues say; each queue's owner first starts anew. */
void time_tell(int place) {
    const Timeline *card = enter(place);
    for (uint32_t queue = 1; queue < card->high; queue++) {
        state->slot[card->queue[queue].owner].busy_until[place] = 0;
    }
    for (uint32_t queue = 1; queue < card->high; queue++) {
        const TimelineQueue *of = &card->queue[queue];
        uint64_t until = timeline_has_work(card, queue) ? UINT64_MAX : of->ended;
        uint64_t *told = &state->slot[of->owner].busy_until[place];
        if (of->id != 0 && until > *told) {
            __atomic_store_n(told, until, __ATOMIC_RELAXED);
        }
    }
    leave(place);
}
