#include "arbiter/container/job_turns.h"

#include "arbiter/container/card_board.h"
#include "arbiter/schedule/job_turn.h"
#include "arbiter/tenant/tenant.h"
#include "arbiter/tenant/turn_allowance.h"
#include "common/arithmetic.h"

/* A job that is asked back has no turn any more after this time on cards that no other tenant waits for. */
#define ANSWER_MAX (40 * NS_PER_MS)

/* The time from a job's call to its beginning on the last card is an average, because it depends on the machine's load.
 */
enum { AVERAGE_OVER = 8 };
#define HANDOVER_STEP (NS_PER_MS / 10)

/* How often the cards of a job in several containers are told of each other while they end. */
#define PROGRESS_INTERVAL (NS_PER_MS / 5)

/* Likewise while the job waits until its cards have repaid what they owe, or have no work any more: while one has work,
 * and while none has. For how long it waits for work, which may be a kernel that waits for nothing. */
#define PROGRESS_INTERVAL_WAITING NS_PER_MS
#define PROGRESS_INTERVAL_AT_REST (20 * NS_PER_MS)
#define WORK_MAX                  (1000 * NS_PER_MS)

/* Cards of such a job that is asked back are idle when their regions have said so for this long. */
#define IDLE_AFTER (NS_PER_MS / 5)

static void merge(struct co_view *all, const struct job_turn_view *card) {
    if (card->waits_since && (!all->wants_since || card->waits_since < all->wants_since))
        all->wants_since = card->waits_since;
    if (card->class > all->class) all->class = card->class;
    if (card->priority < all->priority) all->priority = card->priority;
    all->is_first &= card->is_first;
    all->is_due &= card->is_due;
    all->is_behind_job |= card->is_behind_job;
    all->is_free &= card->is_free;
    all->holds |= card->holds;
    all->is_wanted_back |= card->is_wanted_back;
}

/* A thread that launches on one card after the other asks for the first one only, so all are wanted with it. */
static void want_all(const struct job *job, uint64_t now) {
    for (unsigned i = 0; i < job->count; i++) job_turn_want(job_cards_schedule(job, i), job_cards_tenant(job, i), now);
}

/* A job whose cards owe something waits for no turn until the last one has repaid it. */
static void await_debts(const struct job *job, struct co_view *all, uint64_t now) {
    if (!all->wants_since) return;
    all->wants_since = now < job->repaid_at ? 0 : max_u64(all->wants_since, job->repaid_at);
}

static bool is_used_up(const struct job *job, uint64_t now) { return job->is_fixed && now >= job->ends_by; }

/* A card that waits when the job's time is over gets its next turn with the others. */
struct co_view job_turns_look(struct job *job, uint64_t now) {
    struct co_view all = {
        .cards = job->card_bits, .priority = UINT32_MAX, .is_first = true, .is_due = true, .is_free = true};
    bool are_all_idle = true, is_contested = false, is_any_late = false;
    for (unsigned i = 0; i < job->count; i++) {
        struct job_turn_view card = job_turn_look(job_cards_schedule(job, i), job_cards_tenant(job, i), now);
        merge(&all, &card);
        are_all_idle &= card.is_idle;
        is_contested |= card.is_contested;
        is_any_late |= !card.holds && card.waits_since && now >= job->ends_by;
    }
    all.is_wanted_back |= all.holds && is_contested && (are_all_idle || is_any_late);
    if (job->spans) all.is_wanted_back |= all.holds && is_used_up(job, now);
    if (job->spans) await_debts(job, &all, now);
    job->is_contested = is_contested;
    return all;
}

static uint64_t budget_of(const struct job *job, bool is_floor, uint64_t now) {
    uint64_t budget = 0;
    for (unsigned i = 0; i < job->count; i++)
        budget = max_u64(budget, job_turn_budget(job_cards_schedule(job, i), now));
    return is_floor ? TENANT_FLOOR_BUDGET : turn_allowance_job(job->handover_ns, budget);
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
    job_cards_tell_of_others(job);
    for (unsigned i = 0; i < job->count; i++)
        job_turn_begin(job_cards_schedule(job, i), job_cards_tenant(job, i), job->number, budget, is_floor, now);
}

/* Gives a turn to each card whose client had given its turn back and wants one again before the job's turn is over.
 * Where no other tenant waits, the job's turn goes on. */
static bool rejoin(const struct job *job, uint64_t now) {
    bool is_any = false;
    uint64_t left = now < job->ends_by ? job->ends_by - now : 0;
    if (!job->is_contested && !(job->spans && job->is_fixed)) left = job->budget;
    for (unsigned i = 0; i < job->count && left; i++) {
        struct schedule *schedule = job_cards_schedule(job, i);
        is_any |= job_turn_rejoin(schedule, job_cards_tenant(job, i), job->number, left, now);
    }
    return is_any;
}

static void call(struct job *job, uint64_t now) {
    job->called_at = now;
    for (unsigned i = 0; i < job->count; i++) job_turn_call(job_cards_schedule(job, i), job_cards_tenant(job, i), now);
}

static void withdraw(const struct job *job) {
    for (unsigned i = 0; i < job->count; i++) job_turn_withdraw(job_cards_schedule(job, i), job_cards_tenant(job, i));
}

static struct job_news news_for(const struct job *job, const struct tenancy *card, uint64_t now) {
    struct job_news news = {.spans = job->spans};
    for (unsigned i = 0; i < job->count; i++) {
        const struct tenancy *other = job->cards[i];
        if (other->container == card->container) continue;
        struct container_window window = container_window(other->container, other->region_row, now);
        if (window.number == job->number && window.batches > news.batches) news.batches = window.batches;
        news.is_awaited |= window.is_late;
    }
    return news;
}

/* How far the job's turn is on cards in other containers: all end their launches at the same point of the program.
 * Those of one container see each other in its region. */
static bool tell_progress(struct job *job, uint64_t now) {
    bool is_news = false;
    job->is_any_awaited = false;
    for (unsigned i = 0; i < job->count && job->spans; i++) {
        struct job_news news = news_for(job, job->cards[i], now);
        job->is_any_awaited |= news.is_awaited;
        is_news |= job_turn_tell(job_cards_schedule(job, i), job_cards_tenant(job, i), &news);
    }
    if (is_news) job_cards_touch(job);
    return is_news;
}

static void ask_back(struct job *job, uint64_t now) {
    job->asked_back_at = now;
    tell_progress(job, now);
    withdraw(job);
    for (unsigned i = 0; i < job->count; i++)
        job_turn_ask_back(job_cards_schedule(job, i), job_cards_tenant(job, i), now);
}

void job_turns_carry_out(struct job *job, enum co_state state, const struct co_view *view, uint64_t now) {
    job->state = state;
    job->read_again_at = 0;
    if (state == CO_CALLED) call(job, now);
    if (state == CO_RUNS) begin(job, view, now);
    if (state == CO_ENDS) ask_back(job, now);
    if (state == CO_IDLE) withdraw(job);
    job_cards_touch(job);
}

static bool take_back(const struct job *job, uint64_t now) {
    for (unsigned i = 0; i < job->count; i++)
        job_turn_take_back(job_cards_schedule(job, i), job_cards_tenant(job, i), now);
    job_cards_touch(job);
    return true;
}

/* No other tenant waits for these cards, so nothing else reads their use. */
static bool take_back_idle(const struct job *job, uint64_t now) {
    bool is_any = false;
    for (unsigned i = 0; i < job->count && job->spans && job->is_fixed; i++) {
        struct tenancy *card = job->cards[i];
        struct container_use use = container_use(card->container, card->board->uuid, &card->region_row);
        bool is_idle = now >= saturating_add(use.busy_until, IDLE_AFTER) && now >= use.awaited_until;
        if (is_idle) is_any |= job_turn_take_back(job_cards_schedule(job, i), job_cards_tenant(job, i), now);
    }
    if (is_any) job_cards_touch(job);
    return is_any;
}

/* While no card is at work, nothing is charged, and no card can come to wait for another one. Without a debt they are
 * read each time: the job may have its turn at once. */
void job_turns_read_debts(struct job *job, uint64_t now) {
    job->is_read_now = job->spans && job->state != CO_RUNS && now >= job->read_again_at;
    if (!job->is_read_now) return;
    uint64_t debt = 0;
    bool is_any_at_work = false, is_any_late = false;
    for (unsigned i = 0; i < job->count; i++) {
        const struct tenancy *card = job->cards[i];
        struct container_window window = container_window(card->container, card->region_row, now);
        debt = max_u64(debt, container_debt(card->container, card->board->uuid, card->region_row, now));
        is_any_at_work |= window.is_at_work;
        is_any_late |= window.is_late;
    }
    if (is_any_late && now < job->asked_back_at + WORK_MAX) debt = max_u64(debt, PROGRESS_INTERVAL_WAITING);
    if (debt) job->repaid_at = now + debt;
    uint64_t interval = is_any_at_work ? PROGRESS_INTERVAL_WAITING : PROGRESS_INTERVAL_AT_REST;
    job->read_again_at = debt ? now + min_u64(interval, debt) : now;
}

/* Whether the cards need to know of each other although no turn of theirs ends. */
static bool is_to_be_told(const struct job *job, uint64_t now) {
    bool waits = job->state == CO_IDLE || job->state == CO_CALLED;
    return waits && (job->is_any_awaited || now < job->repaid_at);
}

bool job_turns_keep_up(struct job *job, enum co_state state, const struct co_view *view, uint64_t now) {
    bool waits = state == CO_IDLE || state == CO_CALLED, has_news = false;
    if (state == CO_ENDS || (job->is_read_now && is_to_be_told(job, now))) has_news = tell_progress(job, now);
    if (waits && view->wants_since) want_all(job, now);
    if (state == CO_ENDS && now >= job->asked_back_at + ANSWER_MAX) return take_back(job, now);
    if (state == CO_ENDS) has_news |= take_back_idle(job, now);
    if (has_news) return true;
    if (state != CO_RUNS || !rejoin(job, now)) return false;
    job_cards_touch(job);
    return true;
}

uint64_t job_turns_look_at(const struct job *job, uint64_t now) {
    if (!job->spans) return UINT64_MAX;
    if (job->state == CO_ENDS) return now + PROGRESS_INTERVAL;
    if (job->state == CO_RUNS) return job->is_fixed && now < job->ends_by ? job->ends_by : UINT64_MAX;
    if (!is_to_be_told(job, now)) return UINT64_MAX;
    return job->read_again_at > now ? job->read_again_at : now + PROGRESS_INTERVAL_WAITING;
}
