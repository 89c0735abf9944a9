#include "arbiter/container/jobs.h"

#include "arbiter/container/card_board.h"
#include "arbiter/job/co_schedule.h"
#include "arbiter/schedule/job_turn.h"
#include "common/arithmetic.h"
#include "common/region_layout.h"

/* A job that is asked back has no turn any more after this time on cards that no other tenant waits for. */
#define ANSWER_MAX (40 * NS_PER_MS)

enum { JOBS = 256, CARD_BITS = 64 };

/* Turns of a job are this many times as long as the time from its call to its beginning on the last card, which depends
 * on the machine's load; and no longer than BUDGET_MAX for that reason. */
enum { HANDOVERS_IN_TURN = 6, AVERAGE_OVER = 8 };
#define BUDGET_MAX    (16 * NS_PER_MS)
#define HANDOVER_STEP (NS_PER_MS / 10)

struct job {
    struct container *container;
    struct tenancy *cards[LIMITS_CARDS]; /* on which it has its turns at the same moment */
    uint64_t budget, ends_by;            /* of its last turn; when that was used */
    uint64_t called_at;                  /* before that turn */
    uint64_t asked_back_at;              /* it was asked back last */
    uint64_t handover_ns;                /* the average time from the call to the turn */
    unsigned count;                      /* of `cards`; 0 = it has its turns apart */
    uint32_t rows;                       /* of the container's region, one bit for each linked card */
    uint32_t number;                     /* of its last turn; never 0 */
    enum co_state state;                 /* what was carried out of its plan */
    bool is_contested;                   /* another tenant waits for one of its cards */
};

static struct job jobs[JOBS];
static struct co_job plan[JOBS]; /* of each job */
static unsigned jobs_count;

static struct schedule *schedule_of(const struct tenancy *card) { return card->board->schedule; }

static void touch(const struct job *job) {
    for (unsigned i = 0; i < job->count; i++) card_board_touch(job->cards[i]->board);
}

/* Its cards have turns by themselves again. */
static void part(struct job *job, struct co_job *planned) {
    for (unsigned i = 0; i < job->count; i++) job_turn_part(schedule_of(job->cards[i]), job->cards[i]->tenant);
    touch(job);
    job->count = 0;
    job->state = CO_IDLE;
    *planned = (struct co_job){0};
}

static uint64_t bit_of(const struct tenancy *card) {
    unsigned number = card_board_number(card->board);
    return number < CARD_BITS ? UINT64_C(1) << number : 0;
}

static bool has_row(const struct job *job, struct tenancy *card) {
    return card->region_row < REGION_CARDS && (job->rows >> card->region_row & 1) != 0;
}

static unsigned find_cards(const struct job *job, struct tenancy *found[LIMITS_CARDS], uint64_t now) {
    unsigned count = 0;
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        struct tenancy *card = &job->container->tenancies[i];
        bool is_own = card->board && !card->is_member && has_row(job, card) && bit_of(card);
        if (is_own && job_turn_is_possible(schedule_of(card), card->tenant, now)) found[count++] = card;
    }
    return count > 1 ? count : 0;
}

static bool has_cards(const struct job *job, struct tenancy *const *cards, unsigned count) {
    bool is_same = job->count == count;
    for (unsigned i = 0; is_same && i < count; i++) is_same = job->cards[i] == cards[i];
    return is_same;
}

/* A job has its turns together on the cards that it shares with others; with one such card, it has them apart. */
static bool update_cards(struct job *job, struct co_job *planned, uint64_t now) {
    struct tenancy *found[LIMITS_CARDS];
    unsigned count = find_cards(job, found, now);
    if (has_cards(job, found, count)) return false;
    part(job, planned);
    job->count = count;
    for (unsigned i = 0; i < count; i++) {
        job->cards[i] = found[i];
        job_turn_join(schedule_of(found[i]), found[i]->tenant, job->number, now);
        planned->view.cards |= bit_of(found[i]);
    }
    touch(job);
    return true;
}

static void merge(struct co_view *all, const struct job_turn_view *card) {
    if (card->waits_since && (!all->wants_since || card->waits_since < all->wants_since))
        all->wants_since = card->waits_since;
    if (card->class > all->class) all->class = card->class;
    all->priority = card->priority;
    all->is_first &= card->is_first;
    all->is_due &= card->is_due;
    all->is_behind_job |= card->is_behind_job;
    all->is_free &= card->is_free;
    all->holds |= card->holds;
    all->is_wanted_back |= card->is_wanted_back;
}

/* A thread that launches on one card after the other asks for the first one only, so all are wanted with it. */
static void want_all(const struct job *job, uint64_t now) {
    for (unsigned i = 0; i < job->count; i++) job_turn_want(schedule_of(job->cards[i]), job->cards[i]->tenant, now);
}

/* A card that waits when the job's time is over gets its next turn with the others. */
static void look(struct job *job, struct co_job *planned, uint64_t now) {
    struct co_view all = {.cards = planned->view.cards, .is_first = true, .is_due = true, .is_free = true};
    bool are_all_idle = true, is_contested = false, is_any_late = false;
    for (unsigned i = 0; i < job->count; i++) {
        struct job_turn_view card = job_turn_look(schedule_of(job->cards[i]), job->cards[i]->tenant, now);
        merge(&all, &card);
        are_all_idle &= card.is_idle;
        is_contested |= card.is_contested;
        is_any_late |= !card.holds && card.waits_since && now >= job->ends_by;
    }
    all.is_wanted_back |= all.holds && is_contested && (are_all_idle || is_any_late);
    job->is_contested = is_contested;
    planned->view = all;
}

static uint64_t budget_of(const struct job *job, bool is_floor, uint64_t now) {
    uint64_t budget = min_u64(HANDOVERS_IN_TURN * job->handover_ns, BUDGET_MAX);
    for (unsigned i = 0; i < job->count; i++)
        budget = max_u64(budget, job_turn_budget(schedule_of(job->cards[i]), now));
    return is_floor ? TENANT_FLOOR_BUDGET : budget;
}

/* One that a busy machine makes ten times as long counts as twice the average. */
static void note_handover(struct job *job, uint64_t now) {
    uint64_t last = min_u64(now - job->called_at, 2 * job->handover_ns + HANDOVER_STEP);
    job->handover_ns = (job->handover_ns * (AVERAGE_OVER - 1) + last) / AVERAGE_OVER;
}

static void begin(struct job *job, const struct co_view *view, uint64_t now) {
    bool is_floor = co_schedule_is_starved(view, now);
    note_handover(job, now);
    uint64_t budget = budget_of(job, is_floor, now);
    if (++job->number == 0) job->number = 1;
    job->budget = budget;
    job->ends_by = now + budget;
    for (unsigned i = 0; i < job->count; i++)
        job_turn_begin(schedule_of(job->cards[i]), job->cards[i]->tenant, job->number, budget, is_floor, now);
}

/* Gives a turn to each card whose client had given its turn back and wants one again before the job's turn is over.
 * Where no other tenant waits, the job's turn goes on. */
static bool rejoin(const struct job *job, uint64_t now) {
    bool is_any = false;
    uint64_t left = now < job->ends_by ? job->ends_by - now : 0;
    if (!job->is_contested) left = job->budget;
    for (unsigned i = 0; i < job->count && left; i++) {
        struct schedule *schedule = schedule_of(job->cards[i]);
        is_any |= job_turn_rejoin(schedule, job->cards[i]->tenant, job->number, left, now);
    }
    return is_any;
}

static void call(struct job *job, uint64_t now) {
    job->called_at = now;
    for (unsigned i = 0; i < job->count; i++) job_turn_call(schedule_of(job->cards[i]), job->cards[i]->tenant, now);
}

static void withdraw(const struct job *job) {
    for (unsigned i = 0; i < job->count; i++) job_turn_withdraw(schedule_of(job->cards[i]), job->cards[i]->tenant);
}

static void ask_back(struct job *job, uint64_t now) {
    job->asked_back_at = now;
    withdraw(job);
    for (unsigned i = 0; i < job->count; i++) job_turn_ask_back(schedule_of(job->cards[i]), job->cards[i]->tenant, now);
}

static void carry_out(struct job *job, const struct co_job *planned, uint64_t now) {
    job->state = planned->state;
    if (planned->state == CO_CALLED) call(job, now);
    if (planned->state == CO_RUNS) begin(job, &planned->view, now);
    if (planned->state == CO_ENDS) ask_back(job, now);
    if (planned->state == CO_IDLE) withdraw(job);
    touch(job);
}

/* Turns are asked back before others are called. */
static void carry_out_all(bool are_endings, uint64_t now) {
    for (unsigned i = 0; i < jobs_count; i++)
        if (plan[i].state != jobs[i].state && (plan[i].state == CO_ENDS) == are_endings)
            carry_out(&jobs[i], &plan[i], now);
}

static bool step(uint64_t now) {
    for (unsigned i = 0; i < jobs_count; i++) look(&jobs[i], &plan[i], now);
    if (!co_schedule_step(plan, jobs_count, now)) return false;
    carry_out_all(true, now);
    carry_out_all(false, now);
    return true;
}

static void add(struct container *container, uint32_t rows) {
    if (jobs_count == JOBS) return;
    jobs[jobs_count] = (struct job){.container = container, .rows = rows, .number = 1};
    plan[jobs_count++] = (struct co_job){0};
}

static void remove_at(unsigned index) {
    part(&jobs[index], &plan[index]);
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

/* A job that comes to wait, is called and begins takes that many steps. */
enum { STEPS_MAX = 4 };

static bool take_back(const struct job *job, uint64_t now) {
    for (unsigned i = 0; i < job->count; i++)
        job_turn_take_back(schedule_of(job->cards[i]), job->cards[i]->tenant, now);
    touch(job);
    return true;
}

/* What has to be done before the next step, whatever it decides. Whether anything was done. */
static bool prepare(struct job *job, struct co_job *planned, uint64_t now) {
    bool has_changed = update_cards(job, planned, now);
    look(job, planned, now);
    bool waits = planned->state == CO_IDLE || planned->state == CO_CALLED;
    if (waits && planned->view.wants_since) want_all(job, now);
    if (planned->state == CO_ENDS && now >= job->asked_back_at + ANSWER_MAX) has_changed |= take_back(job, now);
    if (planned->state != CO_RUNS || !rejoin(job, now)) return has_changed;
    touch(job);
    return true;
}

bool jobs_run(uint64_t now) {
    bool has_changed = false;
    for (unsigned i = 0; i < jobs_count; i++) has_changed |= prepare(&jobs[i], &plan[i], now);
    for (int i = 0; i < STEPS_MAX && step(now); i++) has_changed = true;
    return has_changed;
}
