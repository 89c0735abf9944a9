/* The clients of one card: which are connected, which wait, and which pages have to be published. The waiting clients
 * of a tenant form a first-in, first-out queue. Part of the schedule (schedule_state.h). */
#ifndef VGPU_ARBITER_SCHEDULE_CLIENTS_H
#define VGPU_ARBITER_SCHEDULE_CLIENTS_H

#include "arbiter/schedule/schedule_state.h"

/* Takes a client off the list of those whose page is to be published, and returns its index; SCHEDULE_NONE if the list
 * is empty. The caller publishes the page. */
int clients_next_changed(struct schedule *schedule);

/* Whether the index, which may be SCHEDULE_NONE, is that of a connected client. */
bool clients_is_connected(const struct schedule *schedule, int client);

/* Appends a client to its tenant's queue; does nothing if it waits already. */
void clients_enqueue(struct schedule *schedule, int client, uint64_t now);

/* Removes a client from its tenant's queue; does nothing if it does not wait. A tenant that is idle then leaves virtual
 * time (tenant_leave). */
void clients_dequeue(struct schedule *schedule, int client);

/* Whether the tenant neither has the turn nor waits for one. */
bool clients_is_tenant_idle(const struct schedule *schedule, const struct tenant *tenant);

/* Whether a client of any tenant but `tenant` waits. */
bool clients_others_wait(const struct schedule *schedule, int tenant);

/* The GPU time of each step of the client's program, if its turns are to end with whole steps; 0 = they are not. */
uint64_t clients_step(const struct schedule *schedule, int client);

/* Puts a client on the list of those whose page is to be published. */
void clients_mark_changed(struct schedule *schedule, int client);

/* Sets the turn in a client's page: its number, GPU time and depth in ns (UINT64_MAX: no limit). Number 0 takes the
 * turn away. The page is published after the run. */
void clients_publish_turn(struct schedule *schedule, int client, uint32_t turn, uint64_t budget_ns, uint64_t depth_ns);

/* The next number for a turn of this card; never 0. */
uint32_t clients_new_turn_number(struct schedule *schedule);

#endif
