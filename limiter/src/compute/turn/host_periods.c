#include "compute/turn/host_periods.h"

#include "common/arithmetic.h"

/* PERIOD_LAUNCHES: a shorter period says nothing about the host. WEIGHT: of past periods in the average. */
enum { PERIOD_LAUNCHES = 8, WEIGHT = 4, SCORE_HOST_BOUND = 4, SCORE_MAX = 8 };

/* ALIKE_DIVISOR: steps are alike if they differ from the average by no more than this part of it. */
enum { SCORE_ALIKE = 4, ALIKE_DIVISOR = 8 };

/* How long the host is to wait at the end of a period: two handovers. With less, the card would be idle in the turn,
 * because it has caught up with the host; with more, the program would be slower for nothing. */
#define WAIT_WANTED (400 * NS_PER_US)

/* By how much the lead changes at a time, at least. */
#define STEP (40 * NS_PER_US)

/* After a wait that was too long, the lead grows by the excess divided by this. Beside a neighbour whose kernels take
 * milliseconds, a turn that is asked for a little too late comes later by a whole kernel. If the lead grew and shrank
 * by the same step, every second turn would come that late. */
enum { EXCESS_DIVISOR = 4 };

/* Periods longer than this contain a pause of the program's. */
#define PERIOD_MAX (1000 * NS_PER_MS)

void host_periods_note_launch(struct host_periods *periods, uint64_t estimate, uint64_t now) {
    if (periods->launches == 0) periods->begun_at = now;
    periods->launches++;
    periods->expected += estimate;
}

void host_periods_note_wait(struct host_periods *periods, uint64_t ns) { periods->begun_at += ns; }

static uint64_t average(uint64_t past, uint64_t latest) {
    return past ? (past * (WEIGHT - 1) + latest) / WEIGHT : latest;
}

static void learn_score(struct host_periods *periods, uint64_t host_ns) {
    bool is_host_bound = periods->launches >= PERIOD_LAUNCHES && host_ns >= periods->expected + periods->expected / 4;
    if (!is_host_bound)
        periods->host_bound_score -= (unsigned)min_u64(periods->host_bound_score, 2);
    else if (periods->host_bound_score < SCORE_MAX)
        periods->host_bound_score++;
}

static bool is_about(uint64_t ns, uint64_t other) {
    uint64_t difference = ns > other ? ns - other : other - ns;
    return difference <= other / ALIKE_DIVISOR;
}

/* A host that launches for longer than half of the step may be interrupted within it. */
static void learn_awaited(struct host_periods *periods, uint64_t host_ns) {
    bool is_at_once = periods->launches < PERIOD_LAUNCHES && host_ns <= periods->expected / 2;
    if (is_at_once && is_about(periods->expected, periods->awaited_ns)) {
        periods->awaited_ns = average(periods->awaited_ns, periods->expected);
        if (periods->alike_score < SCORE_MAX) periods->alike_score++;
        return;
    }
    periods->alike_score -= (unsigned)min_u64(periods->alike_score, SCORE_ALIKE);
    if (periods->alike_score == 0) periods->awaited_ns = is_at_once ? periods->expected : 0;
}

bool host_periods_note_host_wait(struct host_periods *periods, uint64_t now) {
    uint64_t host_ns = now > periods->begun_at ? now - periods->begun_at : 0;
    bool is_informative = periods->launches >= PERIOD_LAUNCHES && host_ns < PERIOD_MAX;
    if (periods->launches && host_ns < PERIOD_MAX) learn_score(periods, host_ns);
    if (periods->launches) learn_awaited(periods, host_ns);
    if (is_informative) periods->host_ns = average(periods->host_ns, host_ns);
    if (is_informative) periods->step_ns = average(periods->step_ns, periods->expected);
    if (is_informative && periods->lead_ns == 0) periods->lead_ns = periods->expected;
    periods->launches = 0;
    periods->expected = 0;
    return is_informative;
}

/* The lead becomes as short as waits of about WAIT_WANTED allow, without a model of the card or of the neighbours. */
void host_periods_note_waited(struct host_periods *periods, uint64_t ns) {
    if (ns > WAIT_WANTED)
        periods->lead_ns =
            min_u64(periods->lead_ns + max_u64(STEP, (ns - WAIT_WANTED) / EXCESS_DIVISOR), periods->host_ns);
    else
        periods->lead_ns -= min_u64(periods->lead_ns - 1, STEP);
}

/* A program that has launched twice as much since its last wait has stopped to wait in each step. */
uint64_t host_periods_step_ns(const struct host_periods *periods) {
    return periods->expected <= 2 * periods->step_ns ? periods->step_ns : 0;
}

uint64_t host_periods_awaited_ns(const struct host_periods *periods) {
    bool still_waits = periods->expected <= 2 * periods->awaited_ns;
    return still_waits && periods->alike_score >= SCORE_ALIKE ? periods->awaited_ns : 0;
}

bool host_periods_is_host_bound(const struct host_periods *periods) {
    return periods->host_bound_score >= SCORE_HOST_BOUND;
}

uint64_t host_periods_ask_at(const struct host_periods *periods) {
    return periods->begun_at + (periods->host_ns > periods->lead_ns ? periods->host_ns - periods->lead_ns : 0);
}
