#include "charge/cadence.h"

#include "common/arithmetic.h"
#include "common/clock.h"

static uint64_t get(const uint64_t *field) { return __atomic_load_n(field, __ATOMIC_RELAXED); }

static void set(uint64_t *field, uint64_t value) { /* NOLINT(readability-non-const-parameter) */
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

bool cadence_take(struct cadence *cadence, struct cadence_limits limits, uint64_t now) {
    return clock_take_due_at(&cadence->due, limits.least, now);
}

void cadence_record(struct cadence *cadence, struct cadence_limits limits, uint64_t begun, uint64_t ended,
                    bool has_changed) {
    uint64_t rest = (ended - begun) * limits.times;
    uint64_t pause = has_changed ? 0 : min_u64(2 * get(&cadence->pause), limits.most);
    pause = max_u64(pause, limits.least);
    set(&cadence->pause, pause);
    set(&cadence->earliest, ended + max_u64(rest, limits.least));
    set(&cadence->due, ended + max_u64(rest, pause));
}

void cadence_hasten(struct cadence *cadence) {
    set(&cadence->pause, 0);
    set(&cadence->due, get(&cadence->earliest));
}
