#include "charge/reconcile/cadence.h"

#include "common/arithmetic.h"
#include "common/clock.h"

static uint64_t load(const uint64_t *field) { return __atomic_load_n(field, __ATOMIC_RELAXED); }

static void store(uint64_t *field, uint64_t value) { /* NOLINT(readability-non-const-parameter) */
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

bool cadence_take(struct cadence *cadence, struct cadence_limits limits, uint64_t now) {
    return clock_take_due_at(&cadence->due, limits.min_pause, now);
}

void cadence_record(struct cadence *cadence, struct cadence_limits limits, uint64_t started, uint64_t ended,
                    bool has_changed) {
    uint64_t duty_pause = (ended - started) * limits.pause_per_duration;
    uint64_t pause = has_changed ? 0 : min_u64(2 * load(&cadence->pause), limits.max_pause);
    pause = max_u64(pause, limits.min_pause);
    store(&cadence->pause, pause);
    store(&cadence->earliest_due, ended + max_u64(duty_pause, limits.min_pause));
    store(&cadence->due, ended + max_u64(duty_pause, pause));
}

void cadence_hasten(struct cadence *cadence) {
    store(&cadence->pause, 0);
    store(&cadence->due, load(&cadence->earliest_due));
}
