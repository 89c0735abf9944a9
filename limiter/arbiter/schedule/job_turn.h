/* A card's part of a job's turns, which the job has on several cards at the same moment (job/co_schedule.h decides
 * when). While a tenant is of a job, the card gives it no turn by itself, and does not ask its turn back. Part of the
 * schedule (schedule_state.h). */
#ifndef VGPU_ARBITER_SCHEDULE_JOB_TURN_H
#define VGPU_ARBITER_SCHEDULE_JOB_TURN_H

#include "arbiter/schedule/schedule_limits.h"
#include "arbiter/tenant/ranking.h"

struct schedule;

/* Whether the tenant may have its turns with those on other cards: others use the card, and one process of the tenant.
 * `is_repaying`: it asks for none, because a card of the job repays what it owes, or has just done so. Such a pause may
 * be longer than a tenant counts as active; a card that had a turn by itself then would spin until the other one has
 * repaid. */
bool job_turn_is_possible(const struct schedule *schedule, int tenant, bool is_repaying, uint64_t now);

/* Whether the tenant may have its turns so where nothing else uses the card. */
bool job_turn_is_pace_possible(const struct schedule *schedule, int tenant);

/* The tenant needs turns from now on although no other tenant uses the card, because the card opens and closes with
 * others under a fixed share; or it needs none any more. Whether that is new. */
bool job_turn_pace(struct schedule *schedule, int tenant, bool is_paced);

/* The tenant is of a job from now on, or by itself again. Its client's page gets `number`, 0 for the latter. No turns
 * are held jointly on a card of a job. */
void job_turn_join(struct schedule *schedule, int tenant, uint32_t number, uint64_t now);
void job_turn_part(struct schedule *schedule, int tenant);

/* What a card of a job is told of the job's cards in other containers. */
struct job_news {
    bool spans;       /* there are such cards */
    uint32_t batches; /* the most that one of them has had in the job's turn */
    bool is_awaited;  /* work of one of them is late, and a thread waits for it */
};

/* Publishes the news to the tenant's client. Whether it had other ones. */
bool job_turn_tell(struct schedule *schedule, int tenant, const struct job_news *news);

/* What the card says of the tenant's next turn, and of the one that it has. */
struct job_turn_view {
    uint64_t waits_since; /* 0: it does not wait */
    enum class class;
    uint32_t priority;
    bool is_first;       /* it would be given the next turn */
    bool is_due;         /* likewise, at once */
    bool is_behind_job;  /* another job has the turn, whose time is not used */
    bool is_free;        /* no tenant has a turn */
    bool holds;          /* the tenant has it */
    bool is_contested;   /* another tenant waits for the card */
    bool is_idle;        /* the card is idle, or no other tenant waits, so that its use is not read */
    bool is_wanted_back; /* it has a turn that is to be given to a tenant that waits by itself */
};

struct job_turn_view job_turn_look(struct schedule *schedule, int tenant, uint64_t now);

/* The job waits on another card, so it does on this one. */
void job_turn_want(struct schedule *schedule, int tenant, uint64_t now);

/* The card is kept free for the tenant, and the turn that another one has is asked back. One that the tenant has by
 * itself ends: it may be held by a rank that waits for the others. */
void job_turn_call(struct schedule *schedule, int tenant, uint64_t now);

/* The card is not kept free for the tenant any more. */
void job_turn_withdraw(struct schedule *schedule, int tenant);

/* The budget of a turn that began now. */
uint64_t job_turn_budget(const struct schedule *schedule, uint64_t now);

/* Begins the turn, unless the tenant does not wait: the card has none. `is_floor`: it was called because it starved. */
void job_turn_begin(struct schedule *schedule, int tenant, uint32_t number, uint64_t budget, bool is_floor,
                    uint64_t now);

/* Within the job's turn, the tenant waits again, after it had given its own back: begins another one, or calls it.
 * Whether it did either. */
bool job_turn_rejoin(struct schedule *schedule, int tenant, uint32_t number, uint64_t budget, uint64_t now);

/* Ends the tenant's turn if no other tenant waits for its end: then nothing else bounds the turn of a rank that does
 * not answer, and the job's other ranks may be what it waits for. Whether it had one. */
bool job_turn_take_back(struct schedule *schedule, int tenant, uint64_t now);

/* Asks the tenant's turn back, if it has one. */
void job_turn_ask_back(struct schedule *schedule, int tenant, uint64_t now);

#endif
