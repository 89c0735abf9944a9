#include "compute/turn/estimates.h"

#include <stddef.h>

#include "common/arithmetic.h"

/* Longest sample that is counted, in ns: one hour. Keeps the products below within 64 bits. */
#define NS_MAX 3600000000000ULL

/* Shortest estimate that one sample does not make known: several times a launch of the programs that are queued. */
#define DOUBTFUL_MIN (NS_PER_MS / 5)

/* A launch that goes on for longer than this, and than half of the wait before, did not wait for the launches after it:
 * a host that can launch again needs less to launch the rest and release it. */
#define RELEASE_MAX (4 * NS_PER_MS)

/* SLOTS_TRIED: rows in which a key may be stored, from its hash on; if others use them all, the first is overwritten.
 * SCALE_ONE: fixed-point 1.0; the scale stays between 1/32 and 5/4 of it. COUNT_MAX: bounds the weight of past samples
 * in the average. FIRST_SAMPLES: of so many the shortest is the average. OUTLIER_FACTOR: a sample that is longer than
 * the average by this factor is an outlier. SHORTER_MIN: so many samples in a row that are far shorter than the average
 * show that it is wrong: no launch takes less than its kernel. */
enum {
    SLOTS_TRIED = 4,
    SCALE_ONE = 1024,
    SCALE_MIN = SCALE_ONE / 32,
    SCALE_MAX = SCALE_ONE * 5 / 4,
    COUNT_MAX = 16,
    FIRST_SAMPLES = 4,
    OUTLIER_FACTOR = 4,
    SHORTER_MIN = 4
};

uint64_t estimates_key(const void *what, const unsigned shape[6]) {
    uint64_t hash = hash_mix(0, (uint64_t)(uintptr_t)what);
    for (int i = 0; shape && i < 6; i += 2) hash = hash_mix(hash, (uint64_t)shape[i] << 32 | shape[i + 1]);
    return hash ? hash : 1;
}

static unsigned slot_index(uint64_t key, unsigned tried) { return (unsigned)((key >> 32) + tried) % ESTIMATES; }

static const struct estimate *find(const struct estimates *estimates, uint64_t key) {
    for (unsigned tried = 0; tried < SLOTS_TRIED; tried++) {
        const struct estimate *row = &estimates->rows[slot_index(key, tried)];
        if (row->key == key) return row;
    }
    return NULL;
}

static struct estimate *slot_for(struct estimates *estimates, uint64_t key) {
    for (unsigned tried = 0; tried < SLOTS_TRIED; tried++) {
        struct estimate *row = &estimates->rows[slot_index(key, tried)];
        if (row->key == key || row->key == 0) return row;
    }
    return &estimates->rows[slot_index(key, 0)];
}

static uint32_t scale(const struct estimates *estimates) { return estimates->scale ? estimates->scale : SCALE_ONE; }

bool estimates_of(const struct estimates *estimates, uint64_t key, uint64_t *ns) {
    const struct estimate *row = find(estimates, key);
    if (row) *ns = row->ns * scale(estimates) / SCALE_ONE;
    return row != NULL;
}

bool estimates_is_doubtful(const struct estimates *estimates, uint64_t key) {
    const struct estimate *row = find(estimates, key);
    return row && row->count == 1 && row->ns > DOUBTFUL_MIN;
}

bool estimates_is_young(const struct estimates *estimates, uint64_t key) {
    const struct estimate *row = find(estimates, key);
    return !row || row->count < COUNT_MAX;
}

/* The time of a kernel depends on its arguments, so an average of many samples is kept. */
static uint64_t average_with(const struct estimate *row, uint64_t ns) {
    if (row->count < FIRST_SAMPLES) return row->count ? min_u64(row->ns, ns) : ns;
    uint64_t past = min_u64(row->count, COUNT_MAX - 1);
    return (row->ns * past + ns) / (past + 1);
}

/* An outlier counts as the longest time that is not an outlier. A second outlier in a row means that the kernel does
 * something else now: a new average begins with the second one. */
static uint64_t without_outlier(struct estimate *row, uint64_t ns) {
    uint64_t longest = row->ns * OUTLIER_FACTOR;
    bool is_outlier = row->count >= FIRST_SAMPLES && ns > longest, is_confirmed = is_outlier && row->is_outlier;
    row->is_outlier = is_outlier && !is_confirmed;
    if (is_confirmed) *row = (struct estimate){.key = row->key, .ns = ns, .count = FIRST_SAMPLES};
    return row->is_outlier ? longest : ns;
}

void estimates_learn(struct estimates *estimates, uint64_t key, uint64_t ns) {
    struct estimate *row = slot_for(estimates, key);
    if (row->key != key) *row = (struct estimate){.key = key};
    row->ns = average_with(row, without_outlier(row, min_u64(ns, NS_MAX)));
    if (row->count < COUNT_MAX) row->count++;
}

static bool has_slice(const struct estimate *row, uint64_t ns) { return ns > row->ns + row->ns / 2; }

/* Samples with slices say nothing about it. */
static bool is_far_too_long(struct estimate *row, uint64_t ns) {
    if (ns < row->ns / 2)
        row->shorter++;
    else if (!has_slice(row, ns))
        row->shorter = 0;
    return row->shorter >= SHORTER_MIN;
}

/* Without the samples that others' slices have lengthened, the average is that of turns apart. The shortest of many
 * would be less, and the scale, which was fitted to averages, would make it less again. */
void estimates_learn_beside(struct estimates *estimates, uint64_t key, uint64_t ns) {
    struct estimate *row = slot_for(estimates, key);
    if (row->key != key) return;
    if (is_far_too_long(row, ns)) {
        *row = (struct estimate){.key = key, .ns = ns, .count = FIRST_SAMPLES};
        return;
    }
    if (row->count == COUNT_MAX) return;
    if (!has_slice(row, ns)) row->ns = average_with(row, ns);
    row->count++;
}

void estimates_learn_linked(struct estimates *estimates, uint64_t key, uint64_t ns) {
    struct estimate *row = slot_for(estimates, key);
    if (row->key == key && ns < row->ns / 2)
        *row = (struct estimate){.key = key, .ns = ns, .count = FIRST_SAMPLES};
    else
        estimates_learn(estimates, key, row->key == key && has_slice(row, ns) ? row->ns + row->ns / 8 : ns);
}

bool estimates_may_have_waited(uint64_t ns, uint64_t waited) { return ns < waited + max_u64(waited / 2, RELEASE_MAX); }

/* Halved, because the next time the launch is waited for until its estimate is over, and so would never be found to be
 * shorter. FIRST_SAMPLES: if it takes longer after all, two samples suffice. */
void estimates_learn_waiting(struct estimates *estimates, uint64_t key, uint64_t ns, uint64_t waited) {
    struct estimate *row = slot_for(estimates, key);
    if (row->key != key || !estimates_may_have_waited(ns, waited))
        estimates_learn(estimates, key, ns);
    else
        *row = (struct estimate){.key = key, .ns = min_u64(row->ns, ns) / 2, .count = FIRST_SAMPLES};
}

void estimates_fit(struct estimates *estimates, uint64_t expected, uint64_t measured, bool is_device_bound) {
    if (expected == 0 || expected > NS_MAX || measured > NS_MAX) return;
    uint64_t wanted = min_u64(scale(estimates) * measured / expected, is_device_bound ? SCALE_MAX : SCALE_ONE);
    uint64_t next = (3ULL * scale(estimates) + wanted) / 4;
    estimates->scale = next > SCALE_MIN ? (uint32_t)next : SCALE_MIN;
}
