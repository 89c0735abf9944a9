/* A card's schedule from the inside, for the files that it is made of:
 *     clients.c   who is connected, who waits, and in which order within a tenant
 *     shown.c     what the clients' pages say about the card
 *     choice.c    whose turn is next, and whether somebody is due now
 *     holding.c   a turn's beginning, charge and end
 *     foresight.c who will come soon
 *     course.c    what has become due by the clock
 *     schedule.c  tenants, and what clients say */
#ifndef VGPU_PARTS_H
#define VGPU_PARTS_H

#include "common/arithmetic.h"
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
    uint64_t yields_at;   /* where others wait; what it may have in flight then is within the budget */
    uint64_t contested;   /* since when somebody waits for its end, 0 = nobody does */
    uint64_t look_at;     /* when the region is to be read, to see whether the card is idle */
    uint64_t overdue_at;  /* others wait, and it is to be over by then; 0 = nobody said so yet */
    uint64_t ends_at;     /* it is done, but for what the card does until then; 0 = it is not */
    uint64_t done_at;     /* when its client said so */
    uint64_t until;       /* when another one is expected, 0 = nobody is */
    uint64_t begins_by;   /* else it is taken */
    uint64_t expected_at; /* it was given before it was asked for, and its client is expected then; 0 = it was not */
    bool is_asked_to_yield;
};

struct schedule {
    struct holding turn;
    struct watermark watermark;
    struct patience patience; /* of all tenants together: several that lie take no more than one */
    uint64_t counted_until;   /* up to when held time has been charged */
    uint64_t due;             /* when something is to be done next, as of the last run */
    uint64_t pace;            /* of a tenant that always had what is its due */
    uint64_t kept;            /* since a turn was last allowed to end late for it */
    uint64_t kept_paid;       /* when the card may be kept for somebody again */
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

/* Whether the one would be asked to make way for the other at once. */
bool choice_makes_way(const struct schedule *schedule, int one, int other);

/* foresight.c */
struct foreseen {
    int client;  /* SCHEDULE_NONE: nobody is expected */
    uint64_t at; /* 0 then */
};

/* A turn that is to end at a moment ends so much before it at most, for its client does not know that exactly. */
#define FORESIGHT_NEAR (ARBITRATION_KEPT_NS + NS_PER_MS / 10)

/* Who comes first of those for whom that tenant would have to make way. */
struct foreseen foresight_of(struct schedule *schedule, int holder, uint64_t now);

/* Whether that is so soon that nobody else is to begin. */
bool foresight_is_near(const struct schedule *schedule, const struct foreseen *foreseen, uint64_t now);

/* When the turn of one who has to make way is to end; 0 = when it likes. */
uint64_t foresight_until(struct schedule *schedule, const struct foreseen *foreseen);

/* Gives it the turn before it asks. */
void foresight_keep(struct schedule *schedule, const struct foreseen *foreseen, uint64_t budget, uint64_t now);

/* It came, for whom the card was kept, or did not; if it was. */
void foresight_end(struct schedule *schedule, bool has_come, uint64_t now);

/* holding.c */

/* After a grant, to launch something. */
#define HOLDING_TIME_TO_BEGIN NS_PER_MS

void holding_count(struct schedule *schedule, uint64_t now);
void holding_begin(struct schedule *schedule, int client, uint64_t budget, uint64_t until, uint64_t now);
void holding_contest(struct schedule *schedule, uint64_t now);
void holding_end(struct schedule *schedule, uint64_t ended, uint64_t idle_since);
void holding_ask_to_yield(struct schedule *schedule, uint64_t now);
void holding_finish(struct schedule *schedule, uint64_t ends_at, uint64_t now);

/* When a turn is over at the latest, whatever its client says. */
uint64_t holding_limit(const struct schedule *schedule);

#endif
