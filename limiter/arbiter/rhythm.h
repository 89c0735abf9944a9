/* When one that comes at regular moments comes next. Pure: the clock is an argument, in ns. */
#ifndef VGPU_RHYTHM_H
#define VGPU_RHYTHM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arithmetic.h"

/* So much later than expected it still comes on time. */
#define RHYTHM_GRACE (NS_PER_MS / 5)

struct rhythm {
    uint64_t last;     /* when it came last */
    uint64_t next;     /* when it is expected */
    uint64_t interval; /* 0: not known */
    uint32_t steady;   /* how surely it comes then */
};

/* It comes. */
void rhythm_come(struct rhythm *rhythm, uint64_t now);

/* What it was expected at and did not come is passed over. */
void rhythm_pass(struct rhythm *rhythm, uint64_t now);

/* When it comes next; 0: nobody knows. */
uint64_t rhythm_next(const struct rhythm *rhythm);

#endif
