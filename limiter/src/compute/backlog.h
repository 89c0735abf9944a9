/* The backlog of a program: the most GPU time that its host keeps launched ahead of the card. A program with a small
 * one waits for each of its steps, and is late by every turn of a neighbour's. Pure. The caller holds LOCK_GATE or owns
 * the gate (gate_state.h). */
#ifndef VGPU_COMPUTE_BACKLOG_H
#define VGPU_COMPUTE_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

struct backlog {
    uint64_t known_ns;      /* 0 = unknown, or more than turns allow */
    uint64_t most_ns;       /* in this turn */
    unsigned uninformative; /* turns since the backlog was last seen */
    bool is_held_back;      /* in this turn, the gate made a launch wait although much work was in flight */
};

/* A launch was admitted; with it, `outstanding` ns are launched and not done. */
void backlog_note_launch(struct backlog *backlog, uint64_t outstanding);

/* A launch has to wait until less than `depth` ns are in flight. */
void backlog_note_held_back(struct backlog *backlog, uint64_t depth);

/* Learns from the turn that ends. */
void backlog_end_turn(struct backlog *backlog);

#endif
