/* The scheduler of one card: weighted fair queueing over exclusive turns, with guarantees, strict classes, a starvation
 * floor, preemption by latency-sensitive tenants, and reservations for predicted arrivals (ADR 18, 19). Pure: events
 * and the clock (`now`, CLOCK_MONOTONIC in ns) are arguments, and the results are pages for the clients to read.
 *
 * A tenant is a container on the card, a client one of its processes; both are known by index. Turns are needed only
 * while more than one tenant uses the card; otherwise each client that asks gets a turn without limits at once. One
 * client at a time has the turn. Its tenant is charged by the arbiter's clock, from the grant until the client has said
 * that it is done and its work has drained, or until the turn is revoked: because other clients wait and the card is
 * idle, or because the turn is overdue.
 *
 * The caller does this after each event, and at the time that schedule_run returned last:
 *     tenant = schedule_run_tenant_to_check(schedule, now);
 *     if (tenant != SCHEDULE_NONE) {
 *         use = the fields `busy_until` and `awaited_until` of the card's row in the tenant's region;
 *         schedule_run_note_use(schedule, use.busy_until, use.awaited_until, use.is_waiting, now);
 *     }
 *     schedule_run(schedule, now);
 *     while ((client = clients_next_changed(schedule)) != SCHEDULE_NONE)
 *         publish(schedule_page(schedule, client));
 */
#ifndef VGPU_ARBITER_SCHEDULE_SCHEDULE_H
#define VGPU_ARBITER_SCHEDULE_SCHEDULE_H

#include "arbiter/schedule/schedule_limits.h"
#include "arbiter/tenant/demand.h"
#include "common/arbitration.h"

struct schedule;

/* A schedule without tenants; `high` and `low` as for schedule_set_watermark. NULL if memory is out. */
struct schedule *schedule_open(unsigned high, unsigned low);

void schedule_close(struct schedule *schedule);

/* Sets the percentages of the card's time, used by the other tenants, above which the share of best-effort tenants
 * shrinks and below which it grows. */
void schedule_set_watermark(struct schedule *schedule, unsigned high, unsigned low);

/* Adds a tenant; its index, or SCHEDULE_NONE if there are too many. A tenant stays as long as its container, so that
 * reconnecting does not clear what it owes. */
int schedule_add(struct schedule *schedule, const struct demand *demand, uint64_t now);

/* Replaces a tenant's demand. If it differs, the tenant's virtual time, which was counted by the former weight, starts
 * anew from that of the schedule. */
void schedule_set_demand(struct schedule *schedule, int tenant, const struct demand *demand, uint64_t now);

/* Removes a tenant, all of whose clients have left. */
void schedule_remove(struct schedule *schedule, int tenant);

/* Whether there is no tenant. */
bool schedule_is_empty(const struct schedule *schedule);

/* Adds a client of a tenant; `joins`: it knows turns that are held jointly. Its index, or SCHEDULE_NONE if there are
 * too many. */
int schedule_join(struct schedule *schedule, int tenant, bool joins);

/* Removes a client and ends its turn. */
void schedule_leave(struct schedule *schedule, int client, uint64_t now);

/* The client has sent WANT; turns of up to `suitable_turn` ns suit its steps, 0 = any; it waits for each of its steps,
 * of `step` ns, 0 = it does not, or they differ. A client that waits already keeps its place; one that has the turn
 * keeps it, and if the turn was reserved for it, it has arrived now. */
void schedule_want(struct schedule *schedule, int client, uint64_t suitable_turn, uint64_t step, uint64_t now);

/* The client has sent DONE for its turn `number`, or, if `is_awaited`, DONE_AWAITED; its work drains in `rest` ns. May
 * be called again for a turn with less left than before, or once after DONE_AWAITED. A turn that is not the client's is
 * ignored. */
void schedule_done(struct schedule *schedule, int client, uint32_t number, uint64_t rest, bool is_awaited,
                   uint64_t now);

/* Whether any client checks the heartbeat: a client waits, or several tenants are connected. */
bool schedule_needs_heartbeat(const struct schedule *schedule);

/* What a client's page is to contain, except for the heartbeat. */
const struct arbitration_page *schedule_page(const struct schedule *schedule, int client);

/* How long a tenant has held the card, in ns, not counting time in which it had the card to itself. */
uint64_t schedule_held_ns(const struct schedule *schedule, int tenant);

#endif
