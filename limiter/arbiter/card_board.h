/* The cards that somebody uses: each with its schedule, and with whom the schedule's numbers mean. */
#ifndef VGPU_ARBITER_CARD_BOARD_H
#define VGPU_ARBITER_CARD_BOARD_H

#include "region/region.h"
#include "schedule.h"

struct container;
struct connection;

struct card_board {
    uint8_t uuid[UUID_SIZE];
    struct schedule *schedule; /* NULL: the place is free */
    uint64_t next_run_at;      /* when the schedule wants to run again */
    uint64_t next_heartbeat_at;
    struct container *containers[SCHEDULE_TENANTS];
    struct arbitration_page *pages[SCHEDULE_CLIENTS];
};

/* The card's board, made where there is none; NULL when there are too many. */
struct card_board *card_board_of(const uint8_t uuid[UUID_SIZE]);

int card_board_add(struct card_board *board, struct container *container, const struct demand *demand, uint64_t now);

void card_board_change(struct card_board *board, int tenant, const struct demand *demand, uint64_t now);
void card_board_remove(struct card_board *board, int tenant);

/* Closes a board without tenants. */
void card_board_close_unused(struct card_board *board);

/* A process with its page; its number, or SCHEDULE_NONE. The page is as it is to be when this returns. */
int card_board_join(struct card_board *board, int tenant, struct arbitration_page *page, uint64_t now);
void card_board_leave(struct card_board *board, int client, uint64_t now);

/* Does what is due on all cards, shows it, and returns when something will be due. */
uint64_t card_boards_run(uint64_t now);

/* After an event on a card: it runs in the next card_boards_run. */
void card_board_touch(struct card_board *board);

/* The watermarks have changed. */
void card_boards_set_watermarks(void);

#endif
