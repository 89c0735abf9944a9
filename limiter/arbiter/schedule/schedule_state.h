/* The state of a card's schedule, for the files that implement it:
 *     schedule.c           tenants, clients and their messages
 *     schedule_run.c       what is due by the clock
 *     current_turn.c       a turn's beginning, charge and end
 *     group_turn.c         the turn of a group in space, which its clients hold together
 *     next_turn.c          which tenant is next, and whether the holder has to yield
 *     job_turn.c           turns that a job has on several cards at the same moment
 *     expected_arrivals.c  reservations for predicted arrivals
 *     joint_mode.c         whether turns are held jointly
 *     joint_turns.c        turns that are held jointly, and their measurement
 *     contention.c         whether launches on the card need turns
 *     clients.c            queues of waiting clients, and pages to be published
 *     turn_log.c           lines of the debug log about each tenant's turns
 * All times are in ns; points in time are CLOCK_MONOTONIC. Indices that stand for none are SCHEDULE_NONE. */
#ifndef VGPU_ARBITER_SCHEDULE_SCHEDULE_STATE_H
#define VGPU_ARBITER_SCHEDULE_SCHEDULE_STATE_H

#include "arbiter/schedule/joint_mode.h"
#include "arbiter/schedule/schedule_limits.h"
#include "arbiter/tenant/ranking.h"
#include "arbiter/watermark/watermark.h"
#include "common/arbitration.h"
#include "common/arithmetic.h"

/* A client's part of its group's current turn. */
struct turn_part {
    uint32_t number;       /* in the client's page; 0: it has none */
    uint64_t drains_at;    /* when its work drains, as the client said with DONE; 0 = no DONE so far */
    bool is_drain_awaited; /* the client says when the work has drained */
};

struct client {
    bool is_taken;   /* the entry is in use */
    bool is_waiting; /* in its tenant's queue */
    bool joins;      /* it knows turns that are held jointly */
    bool is_changed; /* on the list of clients whose page is to be published */
    int32_t tenant;
    int32_t next;     /* next client in the tenant's queue, or next free entry */
    uint64_t step_ns; /* GPU time of each step of its program, as it says; 0 = they differ, or are not known */
    struct turn_part part;
    struct arbitration_page page;
};

struct current_turn {
    uint32_t number; /* 0: no client has the turn */
    int32_t tenant;
    int32_t client; /* of a group: one of those that hold it */
    uint64_t began_at;
    uint64_t budget;
    uint64_t depth;           /* GPU time that may be in flight at once; of a group, in each part */
    uint64_t yield_at;        /* from when on it is asked to yield to a waiting client that it does not rank before */
    uint64_t contested_since; /* when a client began to wait for its end; 0 = none waits */
    uint64_t check_idle_at;   /* when the region is to be read, to see whether the card is idle */
    uint64_t overdue_at;      /* when it should be over, since it was asked to yield or is done; 0 = neither */
    uint64_t drains_at;       /* when its work drains, as the client said with DONE; 0 = no DONE so far */
    uint64_t done_at;         /* when the client sent DONE; 0 = not yet */
    uint64_t end_by;          /* when another client is expected to arrive; 0 = none is */
    uint64_t begin_by;        /* when it is revoked if its client has launched nothing */
    uint64_t expected_at;     /* when the client is expected to arrive if the turn is reserved for it; 0 = it is not */
    uint64_t asked_back_at;   /* when it was asked to yield; 0 = not yet */
    bool is_busy;             /* the region says that its work is on the card, for no longer than a kernel may take */
    bool is_drain_awaited;    /* the client says when the work has drained */
    bool may_finish;          /* its tenant has a guarantee that pays for it, so a long kernel may run to its end */
    bool is_protected;        /* its tenant had starved or was overdue, so it is not preempted within its budget */
    bool is_of_steps;         /* it ends with a whole step of its client's program */
    bool is_of_job;           /* one of a job's turns on several cards */
    bool is_idle;             /* of a job: the card has been idle for long enough to be given to others */
};

struct schedule {
    struct current_turn turn;
    struct joint_mode joint;
    uint64_t wanted_ns;    /* time in which a client had or wanted a turn, since `joint.measured_since` */
    uint64_t contested_ns; /* likewise, in which a client waited for one */
    struct watermark watermark;
    struct overrun_budget overrun_budget; /* of all tenants together: several that overrun take no more than one */
    uint64_t charged_until;               /* up to when the time of turns has been charged */
    uint64_t next_run_at;                 /* what schedule_run returned last; 0 while it runs */
    uint64_t virtual_time;                /* of the card: that of a tenant which always had its fair share */
    uint64_t reserved_ns;                 /* reserved time since a turn was last allowed to end late */
    uint64_t next_reservation_at;         /* when the next reservation may begin */
    uint64_t last_floor_turn_at;          /* when the starvation floor last gave a turn */
    uint32_t last_turn_number;            /* numbers are not reused */
    int32_t last_client;                  /* the client that had the last turn */
    uint64_t last_turn_ns;                /* how long `last_client` had that turn */
    int32_t preempting_tenant;            /* the tenant for which the current turn is ended early */
    int32_t preempted_tenant; /* the tenant of the turn that is ended early; valid while `preempting_tenant` is */
    int32_t called_tenant;    /* a job's, for which the card is kept free until all cards of the job are */
    unsigned active_tenants_at_refresh; /* active tenants at the last contention_refresh */
    uint64_t next_census_at;            /* when active tenants are counted again */
    bool is_contention_stale;           /* contention_refresh is due */
    int32_t tenants_high;               /* one past the highest tenant index ever used */
    int32_t clients_high;               /* one past the highest client index ever used */
    int32_t free_client;                /* first of the list of free entries below `clients_high` */
    int32_t connected_tenants;          /* tenants with at least one client */
    int32_t paced_tenants;
    int32_t waiting_clients;
    int32_t changed_count;             /* entries of `changed` */
    int32_t changed[SCHEDULE_CLIENTS]; /* clients whose page is to be published */
    struct tenant tenants[SCHEDULE_TENANTS];
    struct client clients[SCHEDULE_CLIENTS];
};

#endif
