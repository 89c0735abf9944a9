#include "region/activity.h"

/* NOLINTNEXTLINE(readability-non-const-parameter): the atomic operation writes it */
static void add(uint64_t *counter, uint64_t amount) { __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED); }

struct region_activity *activity_of(struct region *region, const struct region_card *card) {
    return card ? &region->activity[card - region->cards] : NULL;
}

void activity_count_wait(struct region_activity *activity, enum region_wait_cause cause, uint64_t ns) {
    if (!activity) return;
    add(&activity->waits[cause].ns, ns);
    add(&activity->waits[cause].count, 1);
}

void activity_count_turn(struct region_activity *activity, bool is_handover) {
    if (!activity) return;
    add(&activity->turns, 1);
    if (is_handover) add(&activity->handovers, 1);
}

void activity_count_turn_end(struct region_activity *activity, uint64_t drains_at, uint64_t gaps, uint64_t gap_ns) {
    if (!activity) return;
    __atomic_store_n(&activity->last_kernel_end_at, drains_at, __ATOMIC_RELAXED);
    add(&activity->host_gaps, gaps);
    add(&activity->host_gap_ns, gap_ns);
}

void activity_count_queued(struct region_activity *activity, uint64_t launches) {
    if (activity) add(&activity->queued_launches, launches);
}

void activity_count_synchronize(struct region_activity *activity, uint64_t ns) {
    if (!activity) return;
    add(&activity->synchronizes, 1);
    add(&activity->synchronize_ns, ns);
}

void activity_count_pageable_copy(struct region_activity *activity, uint64_t bytes) {
    if (!activity) return;
    add(&activity->pageable_copies, 1);
    add(&activity->pageable_bytes, bytes);
}

void activity_note_launch(struct region_activity *activity, uint64_t now) {
    if (activity) __atomic_store_n(&activity->last_launch_at, now, __ATOMIC_RELAXED);
}

void activity_count_kernel(struct region_activity *activity, uint64_t ns) {
    if (!activity || ns < REGION_LONG_KERNEL_NS) return;
    __atomic_fetch_add(&activity->long_kernels, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&activity->long_kernel_ns, ns, __ATOMIC_RELAXED);
}
