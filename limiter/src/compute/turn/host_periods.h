/* When a process that queues launches ahead of its turn (ADR 35) asks for the turn. Learns the periods of its host: how
 * long it launches between two calls in which it waits for the card, and how much GPU time it launches meanwhile. Pure:
 * the clock is an argument. All times are in ns; points in time are CLOCK_MONOTONIC. */
#ifndef VGPU_COMPUTE_TURN_HOST_PERIODS_H
#define VGPU_COMPUTE_TURN_HOST_PERIODS_H

#include <stdbool.h>
#include <stdint.h>

/* A period ends when the host waits for the card; the next one begins with the next launch. A structure of zeros has
 * seen no period. */
struct host_periods {
    uint64_t host_ns;          /* average length of a period, without waits for turns */
    uint64_t step_ns;          /* average GPU time of a period; 0 = no period was seen */
    uint64_t lead_ns;          /* how long before the expected end of a period the turn is asked for */
    uint64_t begun_at;         /* when the open period began, moved on by waits for turns; valid if `launches` > 0 */
    uint64_t expected;         /* GPU time launched in the open period */
    unsigned launches;         /* in the open period */
    unsigned host_bound_score; /* 0 to 8; the program is host-bound from 4 on */
    unsigned alike_score;      /* 0 to 8; `awaited_ns` is known from 4 on */
    uint64_t awaited_ns;       /* average GPU time of a period of few launches that were made at once */
};

/* A launch of `estimate` GPU time is admitted at `now`. */
void host_periods_note_launch(struct host_periods *periods, uint64_t estimate, uint64_t now);

/* A launch had to wait `ns` for a turn: that time is not the host's. */
void host_periods_note_wait(struct host_periods *periods, uint64_t ns);

/* The host begins to wait for the card; whether that ends a period from which something can be learnt. */
bool host_periods_note_host_wait(struct host_periods *periods, uint64_t now);

/* At the end of a period of queued launches the host has waited `ns` for the card. Adapts the lead. */
void host_periods_note_waited(struct host_periods *periods, uint64_t ns);

/* The GPU time that the program launches between two waits of its host; 0 = unknown, or it no longer waits. */
uint64_t host_periods_step_ns(const struct host_periods *periods);

/* The GPU time of the program's steps, if they are all about as long: its host makes a few launches at once and then
 * waits for the card. 0 = they are not. */
uint64_t host_periods_awaited_ns(const struct host_periods *periods);

/* Whether the host takes at least a quarter longer to launch its work than the card to do it, by the estimates. Then
 * the card is idle in the program's turns, and launches are worth being queued. */
bool host_periods_is_host_bound(const struct host_periods *periods);

/* When to ask for the turn of the launches that are queued in the open period: so early that the card, which works
 * faster than the host launches, has nearly caught up when the host begins to wait, and no earlier. */
uint64_t host_periods_ask_at(const struct host_periods *periods);

#endif
