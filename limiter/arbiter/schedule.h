/* Whose turn it is on one card. Pure: events and the clock (ns of CLOCK_MONOTONIC) come in as arguments; what the
 * clients are to be shown comes out as their pages.
 *
 * A tenant is a container on the card, a client one of its processes. Only where more than one tenant uses the card are
 * there turns; else each who asks is told at once that it may go on. One client at a time has the turn. It is charged
 * by the clock, from when it gets it until it says that it is done and the rest has passed, or until the turn is taken:
 * because others wait and it left the card idle, or stayed for longer than it may.
 *
 * After each event, and when the time has come that schedule_run returned last:
 *     if ((tenant = schedule_run_tenant_to_look_at(...)) >= 0) schedule_run_note_leased_until(..., `leased_until` of
 * that tenant's region, ...); schedule_run(...); then clients_next_changed(...) until there is none. */
#ifndef VGPU_ARBITER_SCHEDULE_H
#define VGPU_ARBITER_SCHEDULE_H

#include "common/arbitration.h"
#include "demand.h"
#include "schedule_limits.h"

struct schedule;

/* NULL when memory is out. */
struct schedule *schedule_open(unsigned high, unsigned low);
void schedule_close(struct schedule *schedule);

/* Percent of the card in use by the others, above which best effort shrinks and below which it grows. */
void schedule_set_watermark(struct schedule *schedule, unsigned high, unsigned low);

/* A tenant's number, or SCHEDULE_NONE where there is no place. It stays as long as its container, so that nobody is rid
 * of what he owes by connecting anew. */
int schedule_add(struct schedule *schedule, const struct demand *demand, uint64_t now);
void schedule_change(struct schedule *schedule, int tenant, const struct demand *demand, uint64_t now);

/* Its clients have left before. */
void schedule_remove(struct schedule *schedule, int tenant);

/* Whether there is no tenant. */
bool schedule_is_empty(const struct schedule *schedule);

/* A client's number, or SCHEDULE_NONE. */
int schedule_join(struct schedule *schedule, int tenant);
void schedule_leave(struct schedule *schedule, int client, uint64_t now);

/* It wants a turn; said again, it changes nothing. */
void schedule_want(struct schedule *schedule, int client, uint64_t now);

/* It is done with that turn, but for what the card needs `rest` more ns for; said again, sooner than it had said. */
void schedule_done(struct schedule *schedule, int client, uint32_t number, uint64_t rest, uint64_t now);

/* Whether the clients look at `beat` to see that we are there. */
bool schedule_is_watched(const struct schedule *schedule);

/* What a client is to be shown, but for the beat. */
const struct arbitration_page *schedule_page(const struct schedule *schedule, int client);

/* How long a tenant held the card in all, in ns; time in which it had the card to itself does not count. */
uint64_t schedule_held_ns(const struct schedule *schedule, int tenant);

#endif
