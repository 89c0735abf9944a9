/* The cards that somebody uses: each with its schedule, and with whom the schedule's numbers mean. */
#ifndef VGPU_BOARD_H
#define VGPU_BOARD_H

#include "region/region.h"
#include "schedule.h"

struct container;
struct connection;

struct board {
    uint8_t uuid[UUID_SIZE];
    struct schedule *schedule; /* NULL: the place is free */
    uint64_t due;              /* when the schedule wants to run again */
    uint64_t beats_at;
    struct container *containers[SCHEDULE_TENANTS];
    struct arbitration_page *pages[SCHEDULE_CLIENTS];
};

/* The card's board, made where there is none; NULL when there are too many. */
struct board *board_of(const uint8_t uuid[UUID_SIZE]);

int board_add(struct board *board, struct container *container, const struct ask *ask, uint64_t now);

void board_change(struct board *board, int tenant, const struct ask *ask, uint64_t now);
void board_remove(struct board *board, int tenant);

/* Closes a board without tenants. */
void board_close_unused(struct board *board);

/* A process with its page; its number, or SCHEDULE_NONE. The page is as it is to be when this returns. */
int board_join(struct board *board, int tenant, struct arbitration_page *page, uint64_t now);
void board_leave(struct board *board, int client, uint64_t now);

/* Does what is due on all cards, shows it, and returns when something will be due. */
uint64_t boards_run(uint64_t now);

/* After an event on a card: it runs in the next boards_run. */
void board_touch(struct board *board);

/* The watermarks have changed. */
void boards_set_watermarks(void);

#endif
