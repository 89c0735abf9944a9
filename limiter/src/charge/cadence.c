#include "charge/cadence.h"

#include "common/arithmetic.h"
#include "common/clock.h"

static uint64_t get(const uint64_t *field) { return __atomic_load_n(field, __ATOMIC_RELAXED); }

static void set(uint64_t *field, uint64_t value) { /* NOLINT(readability-non-const-parameter) */
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

bool cadence_take(struct cadence *cadence, struct cadence_terms terms, uint64_t now) {
    return moment_take_due_at(&cadence->due, terms.least, now);
}

void cadence_looked(struct cadence *cadence, struct cadence_terms terms, uint64_t begun, uint64_t ended,
                    bool has_changed) {
    uint64_t rest = (ended - begun) * terms.times;
    uint64_t pause = has_changed ? 0 : lesser(2 * get(&cadence->pause), terms.most);
    pause = greater(pause, terms.least);
    set(&cadence->pause, pause);
    set(&cadence->earliest, ended + greater(rest, terms.least));
    set(&cadence->due, ended + greater(rest, pause));
}

void cadence_hasten(struct cadence *cadence) {
    set(&cadence->pause, 0);
    set(&cadence->due, get(&cadence->earliest));
}
