/* A job: the linked cards of a container, or of the containers of one job by their limits files, which have their turns
 * at the same moment (job/co_schedule.h), as the arbiter knows it; and which cards these are. What is done on them:
 * job_turns.h. */
#ifndef VGPU_ARBITER_CONTAINER_JOB_CARDS_H
#define VGPU_ARBITER_CONTAINER_JOB_CARDS_H

#include "arbiter/container/container.h"
#include "arbiter/job/co_schedule.h"

struct schedule;

/* More containers of a job on one node have their turns apart. */
enum { JOB_MEMBERS = LIMITS_CARDS };

/* A container of a job. `rows`: of its region, one bit for each card of the job. */
struct job_member {
    struct container *container;
    uint32_t rows;
};

/* The rows of a container that brings the only card that it uses, whatever its row is. */
#define JOB_ANY_ROW UINT32_MAX

struct job {
    struct job_member members[JOB_MEMBERS];
    struct tenancy *cards[LIMITS_CARDS]; /* on which it has its turns at the same moment */
    uint64_t card_bits;                  /* these cards, one bit for each board */
    uint64_t budget, ends_by;            /* of its last turn; when that was used */
    uint64_t called_at;                  /* before that turn */
    uint64_t asked_back_at;              /* it was asked back last */
    uint64_t handover_ns;                /* the average time from the call to the turn */
    uint64_t repaid_at;     /* of one that spans: when all cards have repaid what their shares owe, and have
                               no work of the last turn */
    uint64_t read_again_at; /* when its regions are to be read again for that */
    unsigned members_count;
    unsigned count;          /* of `cards`; 0 = it has its turns apart */
    uint32_t number;         /* of its last turn; never 0 */
    enum co_state state;     /* what was carried out of its plan */
    uint8_t id[JOB_ID_SIZE]; /* its name, if it has one */
    bool is_named;           /* it is that of containers whose limits name it; else linked cards of one */
    bool spans;              /* `cards` are of several containers */
    bool is_fixed;           /* one of its containers has a fixed share */
    bool is_read_now;        /* its regions were just read */
    bool is_any_awaited;     /* of one that spans: a thread waits for work that should have ended */
    bool is_contested;       /* another tenant waits for one of its cards */
};

/* Finds out which cards the job has turns on now: those that it shares with others; with one such card, it has its
 * turns apart, and so it has on a card that two of its containers use. Whether that has changed: then the job is IDLE,
 * without a turn of its. */
bool job_cards_update(struct job *job, uint64_t now);

/* The cards of a job of several containers with fixed shares need turns also where nothing else uses them: no container
 * knows when the others close. Called when something about the containers may have changed. */
void job_cards_pace(const struct job *job);

/* The container's cards need turns for other tenants only. Called when it leaves a job. */
void job_cards_stop_pacing(const struct container *container);

/* The job's cards have turns by themselves again. */
void job_cards_part(struct job *job);

/* Begins anew what the job's cards are told of its cards in other containers. */
void job_cards_tell_of_others(const struct job *job);

/* After an event: the schedules of the job's cards run in the next card_boards_run. */
void job_cards_touch(const struct job *job);

/* The schedule of a card, and the job's tenant there. */
struct schedule *job_cards_schedule(const struct job *job, unsigned card);
int job_cards_tenant(const struct job *job, unsigned card);

#endif
