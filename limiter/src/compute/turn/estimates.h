/* Estimates of GPU time: the measured average of each kernel with a grid and block shape, and of each graph, in a hash
 * table of fixed size. Pure. The caller holds LOCK_GATE or owns the gate (gate_machine.h). */
#ifndef VGPU_COMPUTE_TURN_ESTIMATES_H
#define VGPU_COMPUTE_TURN_ESTIMATES_H

#include <stdbool.h>
#include <stdint.h>

enum { ESTIMATES = 2048 };

struct estimates {
    struct estimate {
        uint64_t key;        /* from estimates_key; 0 = the row is free */
        uint64_t ns;         /* average GPU time of a launch */
        uint32_t count;      /* samples in the average, at most 16: then new ones have a weight of 1/16 */
        uint16_t is_outlier; /* the last sample was much longer than the average */
        uint16_t shorter;    /* samples in a row, beside other containers, that were much shorter */
    } rows[ESTIMATES];
    uint32_t scale; /* in 1/1024: the time of launches together, over the sum of their averages; 0 = not yet measured */
};

/* The key of a kernel with the three dimensions of its grid and of its block, or of a graph if `shape` is NULL. Never
 * 0. */
uint64_t estimates_key(const void *what, const unsigned shape[6]);

/* Stores in `ns` what a launch is expected to add to a turn's GPU time; false if it was never sampled. */
bool estimates_of(const struct estimates *estimates, uint64_t key, uint64_t *ns);

/* Whether an estimate may be far too long: it is long, and has one sample only. The driver loads a kernel when it is
 * first launched, which can take milliseconds between the events around that launch. */
bool estimates_is_doubtful(const struct estimates *estimates, uint64_t key);

/* Whether the estimate has few samples, or none. */
bool estimates_is_young(const struct estimates *estimates, uint64_t key);

/* Adds a sample: a launch took `ns`. Samples have to be drawn at random from all launches; otherwise the average is not
 * theirs. A sample can be too long, never too short: the time slices of another context, or the host, may interrupt
 * it. So of the first samples the shortest counts, and a much longer one counts in full only when the next one confirms
 * it. */
void estimates_learn(struct estimates *estimates, uint64_t key, uint64_t ns);

/* Adds a sample that was taken beside other containers, whose time slices it may contain. One that is longer than the
 * estimate by more than half is taken to contain one, and counts only as seen. Only an estimate of few samples, which
 * may contain slices or the loading of the kernel too, learns from one sample. Any other is learned anew after several
 * samples in a row of less than half of it: it contains what the host did during samples of turns apart. */
void estimates_learn_beside(struct estimates *estimates, uint64_t key, uint64_t ns);

/* Adds a sample of a card that is linked to others. The launch may belong to a collective, whose kernel spins until the
 * kernels of the other cards have begun, so its shortest time is the one without spinning. A sample of less than half
 * of the estimate replaces the estimate. A sample that is longer by more than half counts as an eighth longer. */
void estimates_learn_linked(struct estimates *estimates, uint64_t key, uint64_t ns);

/* Whether a launch that took `ns` may have waited for later launches of its program, which were admitted `waited` ns
 * after it. */
bool estimates_may_have_waited(uint64_t ns, uint64_t waited);

/* Adds a sample of a launch that may have waited for later launches of its program, which were admitted `waited` ns
 * after it. One that went on for half as long again, and 4 ms, did not wait for them. Otherwise nothing is known but
 * that the launch takes no longer: it counts where there is no estimate, and halves a longer one. */
void estimates_learn_waiting(struct estimates *estimates, uint64_t key, uint64_t ns, uint64_t waited);

/* Adapts `scale` to a turn whose launches were expected to take `expected` ns and took `measured` ns. A shorter time
 * means that launches overlapped. A longer time counts only if the turn `is_device_bound` (the card was rarely idle):
 * it contains the handover then; otherwise the card has waited for the program. */
void estimates_fit(struct estimates *estimates, uint64_t expected, uint64_t measured, bool is_device_bound);

#endif
