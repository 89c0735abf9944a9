#include "arbiter/container/jobs.h"

#include <string.h>

#include "arbiter/container/card_board.h"
#include "arbiter/container/job_cards.h"
#include "arbiter/container/job_terms.h"
#include "arbiter/container/job_turns.h"
#include "common/arithmetic.h"

enum { JOBS = 256 };

static struct job jobs[JOBS];
static struct co_job plan[JOBS]; /* of each job */
static unsigned jobs_count;

static struct job *add(void) {
    if (jobs_count == JOBS) return NULL;
    jobs[jobs_count] = (struct job){.number = 1};
    plan[jobs_count] = (struct co_job){0};
    return &jobs[jobs_count++];
}

static void remove_at(unsigned index) {
    job_cards_part(&jobs[index]);
    jobs_count--;
    jobs[index] = jobs[jobs_count];
    plan[index] = plan[jobs_count];
}

static void add_linked(struct container *container, uint32_t rows) {
    struct job *job = add();
    if (job) job->members[job->members_count++] = (struct job_member){.container = container, .rows = rows};
}

/* Whether the job is linked cards of this container, which names no job. */
static bool is_linked(const struct job *job, const struct container *container) {
    return !job->is_named && job->members[0].container == container;
}

static bool is_known(const struct container *container, uint32_t rows) {
    for (unsigned i = 0; i < jobs_count; i++)
        if (is_linked(&jobs[i], container) && jobs[i].members[0].rows == rows) return true;
    return false;
}

static bool is_among(uint32_t rows, const uint32_t *sets, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (sets[i] == rows) return true;
    return false;
}

static void keep_linked(struct container *container, const uint32_t *sets, unsigned count) {
    for (unsigned i = jobs_count; i-- > 0;)
        if (is_linked(&jobs[i], container) && !is_among(jobs[i].members[0].rows, sets, count)) remove_at(i);
    for (unsigned i = 0; i < count; i++)
        if (!is_known(container, sets[i])) add_linked(container, sets[i]);
}

static struct job_member *member_of(struct job *job, const struct container *container) {
    for (unsigned i = 0; job->is_named && i < job->members_count; i++)
        if (job->members[i].container == container) return &job->members[i];
    return NULL;
}

static bool is_name_of(const struct job *job, const struct container *container) {
    return job->is_named && memcmp(job->id, container->limits.job, JOB_ID_SIZE) == 0;
}

static void leave(unsigned index, struct job_member *member) {
    struct job *job = &jobs[index];
    job_cards_part(job);
    plan[index] = (struct co_job){0};
    member->container->is_bounded = false;
    job_cards_stop_pacing(member->container);
    *member = job->members[--job->members_count];
    job_terms_apply(job);
    job_cards_pace(job);
    if (job->members_count == 0) remove_at(index);
}

/* Leaves the jobs of other names than its limits say; all, unless it is of one. */
static void leave_named(const struct container *container, bool is_of_one) {
    for (unsigned i = jobs_count; i-- > 0;) {
        struct job_member *member = member_of(&jobs[i], container);
        if (member && !(is_of_one && is_name_of(&jobs[i], container))) leave(i, member);
    }
}

static struct job *job_named_by(const struct container *container) {
    for (unsigned i = 0; i < jobs_count; i++)
        if (is_name_of(&jobs[i], container)) return &jobs[i];
    struct job *job = add();
    if (!job) return NULL;
    job->is_named = true;
    memcpy(job->id, container->limits.job, JOB_ID_SIZE);
    return job;
}

static void join_named(struct container *container, uint32_t rows) {
    struct job *job = job_named_by(container);
    if (!job) return;
    struct job_member *member = member_of(job, container);
    if (!member && job->members_count < JOB_MEMBERS) {
        member = &job->members[job->members_count++];
        member->container = container;
    }
    if (member) member->rows = rows;
    job_terms_apply(job);
    job_cards_pace(job);
}

/* Where the container's cards are in its region. The number of these cards. */
static unsigned find_rows(struct container *container) {
    unsigned count = 0;
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        struct tenancy *card = &container->tenancies[i];
        if (!card->board) continue;
        container_use(container, card->board->uuid, &card->region_row);
        count++;
    }
    return count;
}

static uint32_t union_of(const uint32_t *sets, unsigned count) {
    uint32_t rows = 0;
    for (unsigned i = 0; i < count; i++) rows |= sets[i];
    return rows;
}

/* A container that names its job brings the cards that its processes have linked, or the only one that it uses. */
void jobs_refresh(struct container *container) {
    uint32_t sets[CONTAINER_LINKED_SETS];
    unsigned cards = find_rows(container), count = container_linked_sets(container, sets);
    bool is_named = limits_is_of_job(&container->limits);
    keep_linked(container, sets, is_named ? 0 : count);
    leave_named(container, is_named);
    if (is_named) join_named(container, count == 0 && cards == 1 ? JOB_ANY_ROW : union_of(sets, count));
}

void jobs_drop(const struct container *container) {
    for (unsigned i = jobs_count; i-- > 0;)
        if (is_linked(&jobs[i], container)) remove_at(i);
    leave_named(container, false);
}

/* Turns are asked back before others are called. */
static void carry_out_all(bool are_endings, uint64_t now) {
    for (unsigned i = 0; i < jobs_count; i++)
        if (plan[i].state != jobs[i].state && (plan[i].state == CO_ENDS) == are_endings)
            job_turns_carry_out(&jobs[i], plan[i].state, &plan[i].view, now);
}

static bool step(uint64_t now) {
    for (unsigned i = 0; i < jobs_count; i++) plan[i].view = job_turns_look(&jobs[i], now);
    if (!co_schedule_step(plan, jobs_count, now)) return false;
    carry_out_all(true, now);
    carry_out_all(false, now);
    return true;
}

/* A job that comes to wait, is called and begins takes that many steps. */
enum { STEPS_MAX = 4 };

/* Before the next step. Whether anything was done. */
static bool prepare(struct job *job, struct co_job *planned, uint64_t now) {
    bool has_changed = job_cards_update(job, now);
    if (has_changed) *planned = (struct co_job){0};
    job_turns_read_debts(job, now);
    planned->view = job_turns_look(job, now);
    return job_turns_keep_up(job, planned->state, &planned->view, now) || has_changed;
}

bool jobs_run(uint64_t now) {
    bool has_changed = false;
    for (unsigned i = 0; i < jobs_count; i++) has_changed |= prepare(&jobs[i], &plan[i], now);
    for (int i = 0; i < STEPS_MAX && step(now); i++) has_changed = true;
    return has_changed;
}

uint64_t jobs_look_at(uint64_t now) {
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < jobs_count; i++) next = min_u64(next, job_turns_look_at(&jobs[i], now));
    return next;
}
