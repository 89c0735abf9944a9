#include "compute/backlog.h"

#include "common/arithmetic.h"

/* A program that would launch more although this much is in flight has a large backlog. */
#define LARGE (5 * NS_PER_MS)

/* DECAY: of an eighth a turn. FORGET_AFTER: turns in which nothing was seen of the backlog; in short turns the gate
 * holds back every program. */
enum { DECAY = 8, FORGET_AFTER = 256 };

void backlog_note_launch(struct backlog *backlog, uint64_t outstanding) {
    backlog->most_ns = max_u64(backlog->most_ns, outstanding);
}

void backlog_note_held_back(struct backlog *backlog, uint64_t depth) {
    if (depth >= LARGE)
        backlog->is_held_back = true;
    else
        backlog->most_ns = 0;
}

static bool is_forgotten(const struct backlog *backlog) {
    return backlog->is_held_back || backlog->uninformative > FORGET_AFTER;
}

void backlog_end_turn(struct backlog *backlog) {
    bool is_seen = backlog->most_ns && !backlog->is_held_back;
    backlog->uninformative = is_seen ? 0 : backlog->uninformative + 1;
    if (is_forgotten(backlog))
        backlog->known_ns = backlog->uninformative = 0;
    else if (is_seen)
        backlog->known_ns = max_u64(backlog->most_ns, backlog->known_ns - backlog->known_ns / DECAY);
    backlog->most_ns = 0;
    backlog->is_held_back = false;
}
