/* The cards in use. A card's board joins its schedule, which knows tenants and clients by index only, with the
 * containers and pages that these indices stand for. `now` is CLOCK_MONOTONIC in ns. */
#ifndef VGPU_ARBITER_CONTAINER_CARD_BOARD_H
#define VGPU_ARBITER_CONTAINER_CARD_BOARD_H

#include "arbiter/schedule/schedule.h"
#include "common/limits.h"
#include "common/region_layout.h"

struct tenancy;

struct card_board {
    uint8_t uuid[UUID_SIZE];                          /* of the card */
    struct schedule *schedule;                        /* NULL: the entry is free */
    uint64_t next_run_at;                             /* when schedule_run is due */
    uint64_t next_heartbeat_at;                       /* UINT64_MAX: no client checks the heartbeat */
    struct tenancy *tenancies[SCHEDULE_TENANTS];      /* by tenant; of a group in space: a list of its members' */
    struct arbitration_page *pages[SCHEDULE_CLIENTS]; /* by client; NULL: no client has the index */
};

/* The card's board, created if there is none; NULL if there are too many or memory is out. */
struct card_board *card_board_of(const uint8_t uuid[UUID_SIZE]);

/* Adds a tenant without containers to the card; its index, or SCHEDULE_NONE if there are too many. */
int card_board_add(struct card_board *board, const struct demand *demand, uint64_t now);

/* The tenant that is this group in space; SCHEDULE_NONE if there is none. */
int card_board_group(const struct card_board *board, const uint8_t group[SPACE_GROUP_SIZE]);

/* Replaces what a tenant asks of the card. */
void card_board_change(struct card_board *board, int tenant, const struct demand *demand, uint64_t now);

/* Removes a tenant without containers, all of whose clients have left; closes the board if it was the last. */
void card_board_remove(struct card_board *board, int tenant);

/* What the tenant's containers say together of the card. */
struct container_use card_board_use(const struct card_board *board, int tenant);

/* Closes a board without tenants; does nothing to another. */
void card_board_close_unused(struct card_board *board);

/* Adds a client with its page; `joins`: it knows turns that are held jointly. Its index, or SCHEDULE_NONE if there are
 * too many. When this returns, the page is written and may be given to the client. The board owns the page from then
 * on; in case of SCHEDULE_NONE the caller keeps it. */
int card_board_join(struct card_board *board, int tenant, struct arbitration_page *page, bool joins, uint64_t now);

/* Removes a client and unmaps its page. */
void card_board_leave(struct card_board *board, int client, uint64_t now);

/* Runs the schedules that are due, and the heartbeats, and publishes what has changed; returns when the next one is
 * due. */
uint64_t card_boards_run(uint64_t now);

/* Writes what the turns on each card did into the debug log. */
void card_boards_log_turns(void);

/* Number of the board among all. */
unsigned card_board_number(const struct card_board *board);

/* After an event on the card: its schedule runs in the next card_boards_run. */
void card_board_touch(struct card_board *board);

/* Applies the watermarks of the configuration file to every card. */
void card_boards_set_watermarks(void);

#endif
