/* Clients of one card: who is connected, who waits, and in which order within a tenant. */
#ifndef VGPU_ARBITER_CLIENTS_H
#define VGPU_ARBITER_CLIENTS_H

#include "schedule_state.h"

/* A client whose page is not yet as it is to be, which it then counts as; SCHEDULE_NONE: all are. */
int clients_next_changed(struct schedule *schedule);

bool clients_is_connected(const struct schedule *schedule, int client);
void clients_enqueue(struct schedule *schedule, int client, uint64_t now);
void clients_dequeue(struct schedule *schedule, int client);
bool clients_is_tenant_idle(const struct schedule *schedule, const struct tenant *tenant);
bool clients_others_wait(const struct schedule *schedule, int tenant);
void clients_mark_changed(struct schedule *schedule, int client);

/* Writes a turn into a client's page; and the number of the next turn, which never comes again. */
void clients_publish_turn(struct schedule *schedule, int client, uint32_t turn, uint64_t budget_ns, uint64_t depth_ns);
uint32_t clients_new_turn_number(struct schedule *schedule);

#endif
