#include "rhythm.h"

/* Requests of a service: none that come so often that making way for each would be too much, or that seldom. */
#define INTERVAL_LEAST (8 * NS_PER_MS)
#define INTERVAL_MOST  (1000 * NS_PER_MS)

#define OFF_MOST (3 * NS_PER_MS / 10)

/* It is relied upon after five in time; two that are not end that. */
enum { STEADY = 5, STEADY_MOST = 8, MISS = 2, PERCENT_OFF = 3, FULL = 100 };

static uint64_t distance(uint64_t one, uint64_t other) { return one < other ? other - one : one - other; }

static bool is_on_time(const struct rhythm *rhythm, uint64_t now) {
    uint64_t off_most = min_u64(OFF_MOST, rhythm->interval * PERCENT_OFF / FULL);
    return rhythm->interval && distance(rhythm->next, now) <= off_most;
}

static void begin_anew(struct rhythm *rhythm, uint64_t since, uint64_t now) {
    bool is_possible = since >= INTERVAL_LEAST && since <= INTERVAL_MOST;
    rhythm->interval = is_possible ? since : 0;
    rhythm->next = now + rhythm->interval;
}

/* Half of what it was off by may be by chance, and nearly nothing of it is the interval's. */
static void follow(struct rhythm *rhythm, uint64_t now) {
    int64_t off = (int64_t)(now - rhythm->next);
    rhythm->interval += (uint64_t)(off / 8);
    rhythm->next += (uint64_t)(off / 2) + rhythm->interval;
    if (rhythm->steady < STEADY_MOST) rhythm->steady++;
}

void rhythm_pass(struct rhythm *rhythm, uint64_t now) {
    if (!rhythm->interval || now < rhythm->next + RHYTHM_GRACE) return;
    uint64_t passed = (now - rhythm->next - RHYTHM_GRACE) / rhythm->interval + 1;
    rhythm->next += passed * rhythm->interval;
    rhythm->steady -= (uint32_t)min_u64(rhythm->steady, passed * MISS);
}

/* Coming at another time is not missing one: where it does so again and again the moments pass, and it begins anew. */
void rhythm_come(struct rhythm *rhythm, uint64_t now) {
    uint64_t since = now - rhythm->last;
    rhythm->last = now;
    rhythm_pass(rhythm, now);
    if (is_on_time(rhythm, now))
        follow(rhythm, now);
    else if (rhythm->steady == 0)
        begin_anew(rhythm, since, now);
}

uint64_t rhythm_next(const struct rhythm *rhythm) { return rhythm->steady >= STEADY ? rhythm->next : 0; }
