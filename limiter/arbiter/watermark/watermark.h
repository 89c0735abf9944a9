/* How much of a card best-effort tenants may have together: less while the other tenants use much of it. The share is
 * halved above a high watermark of the others' use, and grows by 5 points below a low one (additive increase,
 * multiplicative decrease). Pure: the clock is an argument. All times are in ns. */
#ifndef VGPU_ARBITER_WATERMARK_WATERMARK_H
#define VGPU_ARBITER_WATERMARK_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

enum { WATERMARK_STEPS = 10 };

struct watermark {
    unsigned high, low;    /* percent of the card's time that the other tenants use */
    unsigned share;        /* percent that best-effort tenants may use */
    int64_t credit_ns;     /* token bucket of their time, refilled at `share`; below 0: debt */
    uint64_t next_step_at; /* when `share` is decided again */
    uint64_t refilled_at;
    uint64_t used[WATERMARK_STEPS]; /* by the other tenants, in each of the last steps of 100 ms; a ring */
    unsigned step;                  /* the current entry of `used` */
};

/* No limit at first: best-effort tenants have a share of 100 percent. */
struct watermark watermark_new(unsigned high, unsigned low);

/* A tenant, of best effort or not, held the card for `ns`. */
void watermark_charge(struct watermark *watermark, uint64_t ns, bool is_best_effort);

/* Refills the credit up to now and, every 100 ms, decides the share by the others' use over the last second: above
 * `high` it is halved, below `low` it grows by 5 points, in between it stays. */
void watermark_run(struct watermark *watermark, uint64_t now);

/* Whether the share of best-effort tenants is below 100 percent. */
bool watermark_is_tight(const struct watermark *watermark);

/* Whether a best-effort tenant may have a turn now: the share is not limited, or there is credit. */
bool watermark_allows_best_effort(const struct watermark *watermark);

#endif
