#include "arbiter/tenant/turn_counts.h"

#include "common/arithmetic.h"

void turn_counts_note_end(struct turn_counts *counts, uint64_t asked_back_at, uint64_t ended) {
    counts->turns++;
    if (!asked_back_at) return;
    uint64_t took = saturating_sub(ended, asked_back_at);
    counts->asked_back++;
    counts->drain_ns += took;
    counts->longest_drain_ns = max_u64(counts->longest_drain_ns, took);
}

void turn_counts_note_done(struct turn_counts *counts, uint64_t rest) {
    counts->dones++;
    if (!rest) return;
    counts->busy_dones++;
    counts->rest_ns = saturating_add(counts->rest_ns, rest);
}
