/* How much of a card best-effort containers may have, together: little while the others use much of it. Pure: the clock
 * is an argument, in ns. */
#ifndef VGPU_ARBITER_WATERMARK_H
#define VGPU_ARBITER_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

enum { WATERMARK_STEPS = 10 };

struct watermark {
    unsigned high, low;    /* percent of the card's time that the others use */
    unsigned share;        /* percent, what best effort may have */
    int64_t credit_ns;     /* ns, of it */
    uint64_t next_step_at; /* when the share is set anew */
    uint64_t refilled_at;
    uint64_t used[WATERMARK_STEPS]; /* by the others, in each of the last steps */
    unsigned step;
};

struct watermark watermark_new(unsigned high, unsigned low);

/* Best effort, or the others, held the card for so long. */
void watermark_charge(struct watermark *watermark, uint64_t ns, bool is_best_effort);

/* Brings it up to now: each 100 ms the share halves where the others used more than `high` over the last second, grows
 * by 5 points where they used less than `low`, and stands between. */
void watermark_run(struct watermark *watermark, uint64_t now);

/* Whether best effort may not have all of the card. */
bool watermark_is_tight(const struct watermark *watermark);

bool watermark_allows_best_effort(const struct watermark *watermark);

#endif
