#include "watermark.h"

#define STEP       100000000ULL
#define ROOM_MOST  10000000LL
#define OWED_MOST  1000000000LL
#define PAUSE_MOST 1000000000ULL

enum { FULL = 100, SHARE_LEAST = 1, GROWTH = 5 };

struct watermark watermark_new(unsigned high, unsigned low) {
    return (struct watermark){.high = high, .low = low, .share = FULL, .room = ROOM_MOST};
}

void watermark_charge(struct watermark *watermark, uint64_t ns, bool is_best_effort) {
    if (!is_best_effort)
        watermark->used[watermark->step] += ns;
    else if (ns < (uint64_t)OWED_MOST && watermark->room > -OWED_MOST)
        watermark->room -= (int64_t)ns;
}

static unsigned used_percent(const struct watermark *watermark) {
    uint64_t used = 0;
    for (unsigned i = 0; i < WATERMARK_STEPS; i++) used += watermark->used[i];
    return (unsigned)(used / (WATERMARK_STEPS * STEP / FULL));
}

static unsigned next_share(const struct watermark *watermark) {
    unsigned used = used_percent(watermark), share = watermark->share;
    if (used > watermark->high) return share / 2 > SHARE_LEAST ? share / 2 : SHARE_LEAST;
    if (used < watermark->low) return share + GROWTH < FULL ? share + GROWTH : FULL;
    return share;
}

static void take_step(struct watermark *watermark) {
    watermark->share = next_share(watermark);
    watermark->step = (watermark->step + 1) % WATERMARK_STEPS;
    watermark->used[watermark->step] = 0;
    watermark->due += STEP;
}

static void refill(struct watermark *watermark, uint64_t now) {
    uint64_t passed = now > watermark->refilled_at ? now - watermark->refilled_at : 0;
    if (passed > PAUSE_MOST) passed = PAUSE_MOST;
    watermark->room += (int64_t)(passed * watermark->share / FULL);
    if (watermark->room > ROOM_MOST) watermark->room = ROOM_MOST;
    watermark->refilled_at = now;
}

/* After a long pause nothing of the last second is known, and the steps in it need not be made. */
void watermark_run(struct watermark *watermark, uint64_t now) {
    refill(watermark, now);
    if (now > watermark->due + WATERMARK_STEPS * STEP) {
        for (unsigned i = 0; i < WATERMARK_STEPS; i++) watermark->used[i] = 0;
        watermark->due = now + STEP;
    }
    while (now >= watermark->due) take_step(watermark);
}

bool watermark_is_tight(const struct watermark *watermark) { return watermark->share < FULL; }

bool watermark_has_room(const struct watermark *watermark) {
    return !watermark_is_tight(watermark) || watermark->room > 0;
}
