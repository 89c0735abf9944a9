/* A card's schedule from the inside, for the files that it is made of:
 *     clients.c   who is connected, who waits, and in which order within a tenant
 *     shown.c     what the clients' pages say about the card
 *     choice.c    whose turn is next, and whether somebody is due now
 *     holding.c   a turn's beginning, charge and end
 *     foresight.c who will come soon
 *     course.c    what has become due by the clock
 *     schedule.c  tenants, and what clients say */
#ifndef VGPU_ARBITER_SCHEDULE_STATE_H
#define VGPU_ARBITER_SCHEDULE_STATE_H

#include "common/arbitration.h"
#include "common/arithmetic.h"
#include "ranking.h"
#include "schedule_limits.h"
#include "watermark.h"

struct client {
    bool is_taken;
    bool is_waiting;
    bool is_changed; /* it is on the list of those that are to be shown something */
    int32_t tenant;
    int32_t next; /* of the same tenant, that waits behind it; of the free ones */
    struct arbitration_page page;
};

struct current_turn {
    uint32_t number; /* 0: nobody has the turn */
    int32_t tenant;
    int32_t client;
    uint64_t began_at;
    uint64_t budget;
    uint64_t yield_at;        /* where others wait; what it may have in flight then is within the budget */
    uint64_t contested_since; /* since when somebody waits for its end, 0 = nobody does */
    uint64_t check_idle_at;   /* when the region is to be read, to see whether the card is idle */
    uint64_t overdue_at;      /* others wait, and it is to be over by then; 0 = nobody said so yet */
    uint64_t drains_at;       /* it is done, but for what the card does until then; 0 = it is not */
    uint64_t done_at;         /* when its client said so */
    uint64_t end_by;          /* when another one is expected, 0 = nobody is */
    uint64_t begin_by;        /* else it is taken */
    uint64_t expected_at; /* it was given before it was asked for, and its client is expected then; 0 = it was not */
    bool is_asked_to_yield;
};

struct schedule {
    struct current_turn turn;
    struct watermark watermark;
    struct overrun_budget overrun_budget; /* of all tenants together: several that lie take no more than one */
    uint64_t charged_until;               /* up to when held time has been charged */
    uint64_t next_run_at;                 /* when something is to be done next, as of the last run */
    uint64_t virtual_time;                /* of a tenant that always had what is its due */
    uint64_t reserved_ns;                 /* since a turn was last allowed to end late for it */
    uint64_t next_reservation_at;         /* when the card may be kept for somebody again */
    uint64_t last_floor_turn_at;          /* when a starving tenant last had a turn out of the order */
    uint32_t last_turn_number;            /* of turns, given out so far */
    int32_t last_client;                  /* the client that had the last turn, or NONE */
    int32_t preempting_tenant;            /* the tenant for which the turn was ended early, or NONE */
    int32_t preempted_tenant;             /* whose turn that was */
    unsigned active_tenants_at_refresh;   /* so many tenants used the card when the clients were told */
    uint64_t next_census_at;              /* when it is looked again who has been idle for long */
    bool is_contention_stale;             /* who uses the card has changed since the clients were told */
    int32_t tenants_high;                 /* one past the highest place ever taken */
    int32_t clients_high;
    int32_t free_client;
    int32_t connected_tenants; /* tenants that have clients */
    int32_t waiting_clients;   /* clients */
    int32_t changed_count;     /* of `changed` */
    int32_t changed[SCHEDULE_CLIENTS];
    struct tenant tenants[SCHEDULE_TENANTS];
    struct client clients[SCHEDULE_CLIENTS];
};

#endif
