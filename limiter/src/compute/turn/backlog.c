#include "compute/turn/backlog.h"

#include "common/arithmetic.h"

/* A host that launches nothing for this long, although it may, waits for the card or has nothing to launch. */
#define PAUSE (500 * NS_PER_US)

/* A program that would launch more although this much is in flight has a large backlog. */
#define LARGE (5 * NS_PER_MS)

/* KNOWN_AFTER: periods in a row that have to show the backlog; a busy host pauses now and then. LARGE_AFTER: periods in
 * a row that have to show that it is large; a host that was late may launch two steps at once. DECAY: of an eighth a
 * period. FORGET_AFTER: periods that showed nothing; in short turns the gate holds back every program. */
enum { KNOWN_AFTER = 8, LARGE_AFTER = 4, DECAY = 8, FORGET_AFTER = 256 };

static void note_large(struct backlog *backlog) {
    backlog->large++;
    bool is_known = backlog->seen == KNOWN_AFTER && backlog->large < LARGE_AFTER;
    if (!is_known) backlog->known_ns = backlog->seen = 0;
}

static void note_uninformative(struct backlog *backlog) {
    backlog->uninformative++;
    if (backlog->uninformative > FORGET_AFTER) backlog->known_ns = backlog->seen = backlog->uninformative = 0;
}

static void learn(struct backlog *backlog) {
    backlog->uninformative = backlog->large = 0;
    if (backlog->seen < KNOWN_AFTER) backlog->seen++;
    uint64_t past = backlog->known_ns - backlog->known_ns / DECAY;
    if (backlog->seen == KNOWN_AFTER) backlog->known_ns = max_u64(backlog->most_ns, past);
}

static void end_period(struct backlog *backlog) {
    if (backlog->is_large)
        note_large(backlog);
    else if (backlog->is_held_back)
        note_uninformative(backlog);
    else if (backlog->launches)
        learn(backlog);
    backlog->most_ns = backlog->launches = 0;
    backlog->is_held_back = backlog->is_large = false;
}

void backlog_note_arrival(struct backlog *backlog, uint64_t now) {
    if (now > backlog->last_launch_at + PAUSE) end_period(backlog);
}

void backlog_note_held_back(struct backlog *backlog, uint64_t depth) {
    if (backlog->launches == 0) return;
    backlog->is_held_back = true;
    backlog->is_large |= depth >= LARGE;
}

void backlog_note_launch(struct backlog *backlog, uint64_t outstanding, uint64_t now) {
    backlog->most_ns = max_u64(backlog->most_ns, outstanding);
    backlog->last_launch_at = now;
    backlog->launches++;
}
