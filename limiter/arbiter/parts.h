/* A card's schedule from the inside, for the files that it is made of:
 *     clients.c   who is connected, who waits, and in which order within a tenant
 *     shown.c     what the clients' pages say about the card
 *     choice.c    whose turn is next, and whether somebody is due now
 *     holding.c   a turn's beginning, charge and end
 *     course.c    what has become due by the clock
 *     schedule.c  tenants, and what clients say */
#ifndef VGPU_PARTS_H
#define VGPU_PARTS_H

#include "order.h"
#include "schedule.h"
#include "watermark.h"

struct client {
    bool is_taken;
    bool is_waiting;
    bool is_changed; /* it is on the list of those that are to be shown something */
    int32_t tenant;
    int32_t next; /* of the same tenant, that waits behind it; of the free ones */
    struct arbitration_page page;
};

struct holding {
    uint32_t number; /* 0: nobody has the turn */
    int32_t tenant;
    int32_t client;
    uint64_t began;
    uint64_t budget;
    uint64_t yields_at;  /* where others wait; what it may have in flight then is within the budget */
    uint64_t contested;  /* since when somebody waits for its end, 0 = nobody does */
    uint64_t look_at;    /* when the region is to be read, to see whether the card is idle */
    uint64_t overdue_at; /* others wait, and it is to be over by then; 0 = nobody said so yet */
    uint64_t ends_at;    /* it is done, but for what the card does until then; 0 = it is not */
    bool is_asked_to_yield;
};

struct schedule {
    struct holding turn;
    struct watermark watermark;
    struct patience patience; /* of all tenants together: several that lie take no more than one */
    uint64_t counted_until;   /* up to when held time has been charged */
    uint64_t due;             /* when something is to be done next, as of the last run */
    uint64_t pace;            /* of a tenant that always had what is its due */
    uint64_t floor_at;        /* when a starving tenant last had a turn out of the order */
    uint32_t numbers;         /* of turns, given out so far */
    int32_t last;             /* the client that had the last turn, or NONE */
    int32_t urgent;           /* the tenant for which the turn was ended early, or NONE */
    int32_t interrupted;      /* whose turn that was */
    unsigned shown_active;    /* so many tenants used the card when the clients were told */
    uint64_t census_at;       /* when it is looked again who has been idle for long */
    bool is_stale;            /* who uses the card has changed since the clients were told */
    int32_t tenants_high;     /* one past the highest place ever taken */
    int32_t clients_high;
    int32_t free_client;
    int32_t connected;     /* tenants that have clients */
    int32_t waiting;       /* clients */
    int32_t changed_count; /* of `changed` */
    int32_t changed[SCHEDULE_CLIENTS];
    struct tenant tenants[SCHEDULE_TENANTS];
    struct client clients[SCHEDULE_CLIENTS];
};

/* clients.c */
bool clients_is_one(const struct schedule *schedule, int client);
void clients_wait(struct schedule *schedule, int client, uint64_t now);
void clients_wait_no_more(struct schedule *schedule, int client);
bool clients_is_away(const struct schedule *schedule, const struct tenant *tenant);
bool clients_others_wait(const struct schedule *schedule, int tenant);
void clients_mark(struct schedule *schedule, int client);

/* shown.c: brings all pages up to date with who uses the card. */
void shown_refresh(struct schedule *schedule, uint64_t now);
void shown_turn(struct schedule *schedule, int client, uint32_t turn, uint64_t budget_ns, uint64_t depth_ns);
uint32_t shown_new_number(struct schedule *schedule);
unsigned shown_active(const struct schedule *schedule, uint64_t now);
uint64_t shown_budget(const struct schedule *schedule, uint64_t now);

/* choice.c */
struct choice {
    int tenant;      /* SCHEDULE_NONE: nobody may go now */
    bool is_starved; /* it goes out of the order */
};

struct choice choice_make(struct schedule *schedule, uint64_t now);

/* Whether the tenant that has the turn is to give way now to the best of those that wait. */
bool choice_is_due(struct schedule *schedule, uint64_t now);

/* Whether its turn needs no end of its own: none of those that wait is of its rank or above, and best effort is not
 * held to a part of the card. */
bool choice_is_endless(const struct schedule *schedule, int tenant);

/* Whether somebody else who uses the card is hasty: then no more than a moment's work is to be in flight. */
bool choice_is_hurried(const struct schedule *schedule, int tenant, uint64_t now);

/* holding.c */
void holding_count(struct schedule *schedule, uint64_t now);
void holding_begin(struct schedule *schedule, int client, uint64_t budget, uint64_t now);
void holding_contest(struct schedule *schedule, uint64_t now);
void holding_end(struct schedule *schedule, uint64_t ended, uint64_t idle_since);
void holding_ask_to_yield(struct schedule *schedule, uint64_t now);
void holding_finish(struct schedule *schedule, uint64_t ends_at, uint64_t now);

/* When a turn is over at the latest, whatever its client says. */
uint64_t holding_limit(const struct schedule *schedule);

#endif
