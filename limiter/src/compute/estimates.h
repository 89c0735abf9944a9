/* What launches cost, as far as it has been measured: one figure for each kernel and shape, or graph. Pure; the caller
 * locks. */
#ifndef VGPU_COMPUTE_ESTIMATES_H
#define VGPU_COMPUTE_ESTIMATES_H

#include <stdbool.h>
#include <stdint.h>

enum { ESTIMATES = 2048 };

struct estimates {
    struct estimate {
        uint64_t key;   /* 0 = free */
        uint64_t ns;    /* on average */
        uint64_t count; /* of how many, as far as that matters */
    } rows[ESTIMATES];
    uint32_t scale; /* of 1024: what launches take together over the sum of what each takes; 0 = not known */
};

/* Names a kernel and its grid and blocks, or with no shape a graph. Never 0. */
uint64_t estimates_key(const void *what, const unsigned shape[6]);

/* What a launch is expected to take among others; false where it has not been measured. */
bool estimates_of(const struct estimates *estimates, uint64_t key, uint64_t *ns);

/* One of them took `ns`. Which ones are learnt of is to be by chance, else what is expected is not what they take on
 * average. */
void estimates_learn(struct estimates *estimates, uint64_t key, uint64_t ns);

/* A turn's launches were expected to take `expected` and were done in `measured`: they overlapped, where that is less.
 * Where it is more, the card waited for the program, unless the turn `is_dense`: then a change of contexts was in it.
 */
void estimates_fit(struct estimates *estimates, uint64_t expected, uint64_t measured, bool is_device_bound);

#endif
