#include "arbiter/job/co_schedule.h"

#include <stddef.h>

#include "common/arithmetic.h"

/* A job that waits for this long is called although turns of single tenants on its cards do not end at the same moment,
 * and no job that comes after it is called on its cards before. */
#define MISALIGNED_WAIT (20 * NS_PER_MS)

/* One that waits for this long is called whichever tenants go before it on its cards: the starvation floor of jobs. */
#define STARVED (300 * NS_PER_MS)

static bool has_waited(const struct co_view *view, uint64_t ns, uint64_t now) {
    return view->wants_since && now >= view->wants_since + ns;
}

bool co_schedule_is_starved(const struct co_view *view, uint64_t now) { return has_waited(view, STARVED, now); }

static enum co_state state_after(const struct co_job *job) {
    const struct co_view *view = &job->view;
    switch (job->state) {
        case CO_CALLED:
            if (!view->wants_since) return CO_IDLE;
            return view->is_free ? CO_RUNS : CO_CALLED;
        case CO_RUNS:
            if (!view->holds) return CO_IDLE;
            return view->is_wanted_back ? CO_ENDS : CO_RUNS;
        case CO_ENDS:
            return view->holds ? CO_ENDS : CO_IDLE;
        default:
            return job->state;
    }
}

static bool advance(struct co_job *job) {
    enum co_state next = state_after(job);
    if (next == job->state) return false;
    job->state = next;
    return true;
}

static bool goes_before(const struct co_view *view, const struct co_view *other, uint64_t now) {
    bool is_starved = co_schedule_is_starved(view, now);
    if (is_starved != co_schedule_is_starved(other, now)) return is_starved;
    if (!is_starved && view->class != other->class) return view->class < other->class;
    if (!is_starved && view->priority != other->priority) return view->priority > other->priority;
    return view->wants_since < other->wants_since;
}

/* The first job that waits and was not considered in this step; NULL = there is none. */
static struct co_job *next_waiting(struct co_job *jobs, unsigned count, uint64_t now) {
    struct co_job *first = NULL;
    for (unsigned i = 0; i < count; i++) {
        struct co_job *job = &jobs[i];
        if (job->is_considered || job->state != CO_IDLE || !job->view.wants_since) continue;
        if (!first || goes_before(&job->view, &first->view, now)) first = job;
    }
    return first;
}

static bool is_ready(const struct co_view *view, uint64_t now) {
    bool has_waited_enough =
        (view->is_first && has_waited(view, MISALIGNED_WAIT, now)) || co_schedule_is_starved(view, now);
    return view->is_due || (has_waited_enough && !view->is_behind_job);
}

/* Turns of other jobs on its cards may never be over at the same moment, if these go on taking turns meanwhile. */
static bool claims_cards(const struct co_view *view, uint64_t now) {
    return view->is_first && has_waited(view, MISALIGNED_WAIT, now);
}

static void end_running_on(struct co_job *jobs, unsigned count, uint64_t cards) {
    for (unsigned i = 0; i < count; i++)
        if (jobs[i].state == CO_RUNS && (jobs[i].view.cards & cards) != 0) jobs[i].state = CO_ENDS;
}

/* The cards that are kept free for jobs. */
static uint64_t called_cards(const struct co_job *jobs, unsigned count) {
    uint64_t cards = 0;
    for (unsigned i = 0; i < count; i++)
        if (jobs[i].state == CO_CALLED) cards |= jobs[i].view.cards;
    return cards;
}

static bool call_waiting(struct co_job *jobs, unsigned count, uint64_t now) {
    bool is_any = false;
    uint64_t taken = called_cards(jobs, count);
    for (struct co_job *job; (job = next_waiting(jobs, count, now)) != NULL;) {
        job->is_considered = true;
        bool is_called = (job->view.cards & taken) == 0 && is_ready(&job->view, now);
        if (is_called || claims_cards(&job->view, now)) taken |= job->view.cards;
        if (!is_called) continue;
        job->state = CO_CALLED;
        end_running_on(jobs, count, job->view.cards);
        is_any = true;
    }
    return is_any;
}

/* Jobs are called by views that know of all changes. */
bool co_schedule_step(struct co_job *jobs, unsigned count, uint64_t now) {
    bool has_changed = false;
    for (unsigned i = 0; i < count; i++) {
        jobs[i].is_considered = false;
        has_changed |= advance(&jobs[i]);
    }
    return has_changed || call_waiting(jobs, count, now);
}
