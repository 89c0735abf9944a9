/* Counters of what a container's launches did on a card (`struct region_activity`), for readers outside. No function
 * takes a lock; `activity` is NULL where there is no region, and nothing is counted then. Times are in ns. */
#ifndef VGPU_REGION_ACTIVITY_H
#define VGPU_REGION_ACTIVITY_H

#include <stdbool.h>

#include "common/region_layout.h"

/* The row that belongs to a card of the region; NULL if `card` is. */
struct region_activity *activity_of(struct region *region, const struct region_card *card);

/* A launch waited `ns` for `cause`. */
void activity_count_wait(struct region_activity *activity, enum region_wait_cause cause, uint64_t ns);

/* A turn of the arbiter's begins; `is_handover`: another client had the card before. */
void activity_count_turn(struct region_activity *activity, bool is_handover);

/* A turn has ended: its work drains at `drains_at` (CLOCK_MONOTONIC), and the card had been idle in `gaps` gaps of
 * `gap_ns` together, because nothing was launched. */
void activity_count_turn_end(struct region_activity *activity, uint64_t drains_at, uint64_t gaps, uint64_t gap_ns);

/* `launches` were queued ahead of their turn, and their wait was opened. */
void activity_count_queued(struct region_activity *activity, uint64_t launches);

/* A call waited `ns` for the card. */
void activity_count_synchronize(struct region_activity *activity, uint64_t ns);

/* `bytes` were copied between the card and pageable memory of the host. */
void activity_count_pageable_copy(struct region_activity *activity, uint64_t bytes);

/* A kernel, or a graph, that was alone in its turn took `ns`. Counted where it was a long one. */
void activity_count_kernel(struct region_activity *activity, uint64_t ns);

/* The gate has admitted a launch at `now` (CLOCK_MONOTONIC). */
void activity_note_launch(struct region_activity *activity, uint64_t now);

#endif
