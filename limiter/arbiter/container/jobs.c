#include "arbiter/container/jobs.h"

#include "arbiter/container/card_board.h"
#include "arbiter/container/job_cards.h"
#include "arbiter/container/job_turns.h"

enum { JOBS = 256 };

static struct job jobs[JOBS];
static struct co_job plan[JOBS]; /* of each job */
static unsigned jobs_count;

static void add(struct container *container, uint32_t rows) {
    if (jobs_count == JOBS) return;
    jobs[jobs_count] = (struct job){.container = container, .rows = rows, .number = 1};
    plan[jobs_count++] = (struct co_job){0};
}

static void remove_at(unsigned index) {
    job_cards_part(&jobs[index]);
    jobs_count--;
    jobs[index] = jobs[jobs_count];
    plan[index] = plan[jobs_count];
}

static bool is_known(const struct container *container, uint32_t rows) {
    for (unsigned i = 0; i < jobs_count; i++)
        if (jobs[i].container == container && jobs[i].rows == rows) return true;
    return false;
}

static bool is_among(uint32_t rows, const uint32_t *sets, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (sets[i] == rows) return true;
    return false;
}

static void find_rows(struct container *container) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        struct tenancy *card = &container->tenancies[i];
        if (card->board) container_use(container, card->board->uuid, &card->region_row);
    }
}

void jobs_refresh(struct container *container) {
    find_rows(container);
    uint32_t sets[CONTAINER_LINKED_SETS];
    unsigned count = container_linked_sets(container, sets);
    for (unsigned i = jobs_count; i-- > 0;)
        if (jobs[i].container == container && !is_among(jobs[i].rows, sets, count)) remove_at(i);
    for (unsigned i = 0; i < count; i++)
        if (!is_known(container, sets[i])) add(container, sets[i]);
}

void jobs_drop(const struct container *container) {
    for (unsigned i = jobs_count; i-- > 0;)
        if (jobs[i].container == container) remove_at(i);
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
    planned->view = job_turns_look(job, now);
    return job_turns_keep_up(job, planned->state, &planned->view, now) || has_changed;
}

bool jobs_run(uint64_t now) {
    bool has_changed = false;
    for (unsigned i = 0; i < jobs_count; i++) has_changed |= prepare(&jobs[i], &plan[i], now);
    for (int i = 0; i < STEPS_MAX && step(now); i++) has_changed = true;
    return has_changed;
}
