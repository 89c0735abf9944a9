/* The current turn as a group in space has it (docs/adr/0174): the clients of the group's members run at the same
 * moment, so each of them that asks has a part of the turn, until it says that it is done. The turn ends when all parts
 * have drained, or is revoked as a whole. A part has no budget: it ends when the arbiter asks the turn back. Its client
 * measures it as any other turn. What it measures contains the kernels of other members, so it learns how long its work
 * takes beside them, and announces the drain by that. Part of the schedule (schedule_state.h). */
#ifndef VGPU_ARBITER_SCHEDULE_GROUP_TURN_H
#define VGPU_ARBITER_SCHEDULE_GROUP_TURN_H

#include "arbiter/schedule/schedule_state.h"

/* Whether a group has the current turn. */
bool group_turn_is_current(const struct schedule *schedule);

/* Whether the client has a part of it, and has not said that it is done. */
bool group_turn_is_held_by(const struct schedule *schedule, int client);

/* Whether the client may have a part of it: it is of the group, and the turn is not asked back and does not drain. */
bool group_turn_admits(const struct schedule *schedule, int client);

/* Gives the client a part, unless it has one, and takes it off its tenant's queue. */
void group_turn_give(struct schedule *schedule, int client);

/* Gives all waiting clients of the group a part. */
void group_turn_give_waiting(struct schedule *schedule);

/* Asks every part back. */
void group_turn_ask_to_yield(struct schedule *schedule);

/* The client has sent DONE for its part `number`: its work drains at `drains_at`. Whether that is news. */
bool group_turn_note_done(struct schedule *schedule, int client, uint32_t number, uint64_t drains_at, bool is_awaited);

/* The client leaves, and with it its work. Whether it had a part. */
bool group_turn_leave(struct schedule *schedule, int client);

/* What the parts come to. */
struct group_drain {
    int client;         /* one that has a part; SCHEDULE_NONE: none has */
    bool is_held;       /* a client has not said that it is done */
    bool is_awaited;    /* a client says when its work has drained */
    uint64_t drains_at; /* when the last part that is done drains */
};

struct group_drain group_turn_drain(const struct schedule *schedule);

/* Takes all parts away. */
void group_turn_take_back(struct schedule *schedule);

#endif
