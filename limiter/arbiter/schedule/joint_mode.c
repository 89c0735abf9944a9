#include "arbiter/schedule/joint_mode.h"

#include "common/arithmetic.h"

/* How long is measured. A turn is charged when it has ended, so each end of a measurement is uncertain by a turn. */
#define APART_WINDOW (600 * NS_PER_MS)
#define TRIAL_MAX    (2000 * NS_PER_MS) /* until all have waited for something */
#define HELD_WINDOW  (1000 * NS_PER_MS)

/* What was launched before a trial began has run after this, and is charged: nothing is judged before. */
#define DRAIN (80 * NS_PER_MS)

/* Turns apart whose kernels take this much of the time in which the card is wanted lose so little to handovers and
 * pauses that time slices, which cost compute-bound tenants 10 %, are not tried. Two tenants that each launch a graph
 * and wait for it, 2 ms each time, have 945, and gain 6 %. */
#define FULL_PERMILLE 1000U

enum { USEFUL_ENOUGH = 965 };

/* Likewise where a tenant within its guarantee asks for something beside one that has more than its own. Jointly that
 * one gains what turns waste, and the other one pays for it with its latency. Requests beside training or beside a
 * burner waste 5 to 10 %, and wait for twice as long in time slices; two small models waste half. */
enum { USEFUL_ENOUGH_AT_RISK = 800 };

/* SATURATED: if a tenant waits for this part of the time, they want more than they get, so that the better way shows in
 * what they do. Otherwise all that they want is done in both ways. In either case none may be worse off than apart.
 * BUSY_MIN: with less there is nothing to gain. */
enum { SATURATED = 500, BUSY_MIN = 20 };

/* A trial has to show this much more, so that chance does not decide. */
enum { GAIN_MIN = 20 };

/* A change of the card's use by this much, in permille of its time, means that the programs do something else. In the
 * first seconds of a joint turn the estimates still change, and what is read of the card's use with them. */
enum { CHANGE_MIN = 150 };
#define LEARNS_FOR (5000 * NS_PER_MS)

/* The other way is tried again after these times, which double each time that the answer is the same: a trial costs
 * compute-bound tenants a tenth of its time, and a look at turns apart costs small programs some requests. */
#define PAUSE_MIN (600 * NS_PER_MS)
#define HOLD_MIN  (60000 * NS_PER_MS)
#define AGAIN_MAX (600000 * NS_PER_MS)

/* The first one after a trial in which a tenant was slower. One that is broken off lasts for 0.2 s: requests that wait
 * for time slices are then one in a hundred, also where newcomers begin the measurements anew. */
#define HARMFUL_PAUSE_MIN (20000 * NS_PER_MS)

/* What is read of regions may come to more than the card's time. */
static uint32_t permille(uint64_t part, uint64_t whole) { return permille_of(part, whole, 2 * FULL_PERMILLE); }

bool joint_mode_is_on(const struct joint_mode *mode) { return mode->phase != JOINT_APART; }

static enum joint_change enter(struct joint_mode *mode, enum joint_phase phase, enum joint_change change,
                               uint64_t now) {
    mode->phase = phase;
    mode->since = mode->measured_since = now;
    return change;
}

static enum joint_change measure_again(struct joint_mode *mode, uint64_t now) {
    mode->measured_since = now;
    return JOINT_MEASURES;
}

static uint64_t longer(uint64_t past, uint64_t least) { return past ? min_u64(2 * past, AGAIN_MAX) : least; }

static enum joint_change end(struct joint_mode *mode, uint64_t now) {
    return enter(mode, JOINT_APART, JOINT_ENDS, now);
}

/* Joint turns were not better. */
static enum joint_change give_up(struct joint_mode *mode, uint64_t now) {
    mode->pause = longer(mode->pause, PAUSE_MIN);
    mode->retry_at = now + mode->pause;
    mode->hold = 0;
    return end(mode, now);
}

/* A tenant was slower. */
static enum joint_change give_up_for_long(struct joint_mode *mode, uint64_t now) {
    mode->pause = max_u64(mode->pause, HARMFUL_PAUSE_MIN / 2);
    mode->is_harmful = true;
    return give_up(mode, now);
}

/* Also where a newcomer ends the next trial before it shows anything. */
static uint64_t retry_after_harm(const struct joint_mode *mode, uint64_t now) {
    uint64_t latest = now + HARMFUL_PAUSE_MIN;
    return joint_mode_is_on(mode) ? latest : min_u64(mode->retry_at, latest);
}

static enum joint_change start_anew(struct joint_mode *mode, uint64_t now) {
    bool is_on = joint_mode_is_on(mode);
    *mode = (struct joint_mode){.since = now,
                                .measured_since = now,
                                .retry_at = mode->is_harmful ? retry_after_harm(mode, now) : 0,
                                .is_first = true,
                                .is_harmful = mode->is_harmful};
    return is_on ? JOINT_ENDS : JOINT_MEASURES;
}

static enum joint_change step_apart(struct joint_mode *mode, const struct joint_figures *figures, uint64_t now) {
    uint64_t passed = now - mode->measured_since;
    if (passed < APART_WINDOW) return JOINT_GOES_ON;
    if (mode->is_first) {
        mode->is_first = false;
        return measure_again(mode, now);
    }
    mode->apart_permille = permille(figures->used_ns, passed);
    mode->is_saturated = permille(figures->contested_ns, passed) >= SATURATED;
    uint32_t useful_enough = figures->is_any_at_risk ? USEFUL_ENOUGH_AT_RISK : USEFUL_ENOUGH;
    bool is_wasteful = permille(figures->used_ns, figures->wanted_ns) < useful_enough;
    bool is_worth_it = is_wasteful && permille(figures->wanted_ns, passed) >= BUSY_MIN && now >= mode->retry_at;
    return is_worth_it ? enter(mode, JOINT_DRAINS, JOINT_BEGINS, now) : measure_again(mode, now);
}

static enum joint_change step_draining(struct joint_mode *mode, uint64_t now) {
    return now - mode->since < DRAIN ? JOINT_GOES_ON : enter(mode, JOINT_TRIED, JOINT_MEASURES, now);
}

static bool is_any_worse_off(const struct joint_figures *figures) {
    return figures->is_any_behind || figures->is_any_slower;
}

static bool is_better(const struct joint_mode *mode, const struct joint_figures *figures, uint32_t used) {
    if (is_any_worse_off(figures)) return false;
    return !mode->is_saturated || used * FULL_PERMILLE >= mode->apart_permille * (FULL_PERMILLE + GAIN_MIN);
}

static enum joint_change step_tried(struct joint_mode *mode, const struct joint_figures *figures, uint64_t now) {
    uint64_t passed = now - mode->measured_since;
    if (figures->is_any_slower) return give_up_for_long(mode, now);
    if (passed < (figures->is_any_unseen ? TRIAL_MAX : JOINT_TRIAL)) return JOINT_GOES_ON;
    mode->is_harmful = false;
    mode->joint_permille = permille(figures->used_ns, passed);
    if (!is_better(mode, figures, mode->joint_permille)) return give_up(mode, now);
    mode->hold = longer(mode->hold, HOLD_MIN);
    mode->is_worse = false;
    return enter(mode, JOINT_HELD, JOINT_MEASURES, now);
}

static bool has_changed(const struct joint_mode *mode, uint32_t used) {
    uint32_t difference = used > mode->joint_permille ? used - mode->joint_permille : mode->joint_permille - used;
    return difference > CHANGE_MIN;
}

static enum joint_change step_held(struct joint_mode *mode, const struct joint_figures *figures, uint64_t now) {
    uint64_t passed = now - mode->measured_since;
    if (passed < HELD_WINDOW) return JOINT_GOES_ON;
    bool was_worse = mode->is_worse;
    mode->is_worse = is_any_worse_off(figures);
    if (was_worse && mode->is_worse) return give_up(mode, now);
    uint32_t used = permille(figures->used_ns, passed);
    if (now - mode->since <= LEARNS_FOR) mode->joint_permille = used;
    bool is_due = now - mode->since >= mode->hold || has_changed(mode, used);
    if (!is_due) return measure_again(mode, now);
    mode->pause = 0;
    return end(mode, now);
}

enum joint_change joint_mode_step(struct joint_mode *mode, const struct joint_figures *figures, uint64_t now) {
    if (!figures->is_possible || figures->has_newcomer) return start_anew(mode, now);
    switch (mode->phase) {
        case JOINT_DRAINS:
            return step_draining(mode, now);
        case JOINT_TRIED:
            return step_tried(mode, figures, now);
        case JOINT_HELD:
            return step_held(mode, figures, now);
        case JOINT_APART:
            break;
    }
    return step_apart(mode, figures, now);
}
