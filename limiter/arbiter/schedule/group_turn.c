#include "arbiter/schedule/group_turn.h"

#include "arbiter/schedule/clients.h"
#include "arbiter/tenant/tenant.h"
#include "common/arithmetic.h"

bool group_turn_is_current(const struct schedule *schedule) {
    return schedule->turn.number && schedule->tenants[schedule->turn.tenant].demand.is_group;
}

static bool has_part(const struct schedule *schedule, int client) {
    return group_turn_is_current(schedule) && schedule->clients[client].is_taken &&
           schedule->clients[client].part.number;
}

bool group_turn_is_held_by(const struct schedule *schedule, int client) {
    return has_part(schedule, client) && !schedule->clients[client].part.drains_at;
}

bool group_turn_admits(const struct schedule *schedule, int client) {
    const struct current_turn *turn = &schedule->turn;
    return group_turn_is_current(schedule) && schedule->clients[client].tenant == turn->tenant &&
           !turn->asked_back_at && !turn->drains_at;
}

void group_turn_give(struct schedule *schedule, int client) {
    struct client *member = &schedule->clients[client];
    if (group_turn_is_held_by(schedule, client)) return;
    clients_dequeue(schedule, client);
    member->part = (struct turn_part){.number = clients_new_turn_number(schedule)};
    clients_publish_turn(schedule, client, member->part.number, UINT64_MAX, schedule->turn.depth);
    member->page.end_by = 0;
    member->page.free_at = schedule->turn.began_at + TENANT_HANDOVER;
}

void group_turn_give_waiting(struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->clients_high; i++)
        if (schedule->clients[i].is_taken && schedule->clients[i].is_waiting && group_turn_admits(schedule, i))
            group_turn_give(schedule, i);
}

void group_turn_ask_to_yield(struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->clients_high; i++) {
        if (!group_turn_is_held_by(schedule, i)) continue;
        schedule->clients[i].page.yield_turn = schedule->clients[i].part.number;
        clients_mark_changed(schedule, i);
    }
}

struct group_drain group_turn_drain(const struct schedule *schedule) {
    struct group_drain drain = {.client = SCHEDULE_NONE};
    for (int32_t i = 0; i < schedule->clients_high; i++) {
        const struct turn_part *part = &schedule->clients[i].part;
        if (!has_part(schedule, i)) continue;
        if (drain.client == SCHEDULE_NONE) drain.client = i;
        drain.is_held |= group_turn_is_held_by(schedule, i);
        drain.is_awaited |= part->is_drain_awaited;
        drain.drains_at = max_u64(drain.drains_at, part->drains_at);
    }
    return drain;
}

bool group_turn_note_done(struct schedule *schedule, int client, uint32_t number, uint64_t drains_at, bool is_awaited) {
    struct turn_part *part = &schedule->clients[client].part;
    if (!has_part(schedule, client) || part->number != number) return false;
    if (part->drains_at && part->drains_at <= drains_at && !part->is_drain_awaited) return false;
    part->is_drain_awaited = is_awaited && !part->drains_at;
    part->drains_at = drains_at;
    return true;
}

bool group_turn_leave(struct schedule *schedule, int client) {
    bool had_part = has_part(schedule, client);
    schedule->clients[client].part = (struct turn_part){0};
    return had_part;
}

void group_turn_take_back(struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->clients_high; i++) {
        struct client *member = &schedule->clients[i];
        if (!has_part(schedule, i)) continue;
        if (member->page.turn == member->part.number) clients_publish_turn(schedule, i, 0, 0, 0);
        member->part = (struct turn_part){0};
    }
}
