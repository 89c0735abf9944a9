/* The backlog of a program: the most GPU time that its host keeps launched ahead of the card. A program with a small
 * one waits for each of its steps, and is late by every turn of a neighbour's. The backlog shows in periods: the
 * launches between two pauses of the host. Pure. The caller holds LOCK_GATE. */
#ifndef VGPU_COMPUTE_TURN_BACKLOG_H
#define VGPU_COMPUTE_TURN_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

struct backlog {
    uint64_t known_ns; /* 0 = unknown, or more than turns allow */
    uint64_t most_ns;  /* in this period */
    uint64_t last_launch_at;
    unsigned launches;      /* in this period */
    unsigned seen;          /* periods in a row that showed the backlog, up to the number at which it is known */
    unsigned large;         /* periods in a row that showed that it is large */
    unsigned uninformative; /* periods in a row that showed nothing */
    bool is_held_back;      /* in this period, the gate made a launch wait */
    bool is_large;          /* in this period, the gate made a launch wait although much work was in flight */
};

/* The host wants to launch at `now`: after a pause, a new period begins. */
void backlog_note_arrival(struct backlog *backlog, uint64_t now);

/* A launch has to wait until less than `depth` ns are in flight, or for the next turn: then `depth` is 0. The first
 * launch of a period says nothing about how far the host would be ahead. */
void backlog_note_held_back(struct backlog *backlog, uint64_t depth);

/* A launch was admitted at `now`; with it, `outstanding` ns are launched and not done. */
void backlog_note_launch(struct backlog *backlog, uint64_t outstanding, uint64_t now);

#endif
