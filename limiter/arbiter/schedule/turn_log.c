#include "arbiter/schedule/turn_log.h"

#include <inttypes.h>

#include "arbiter/schedule/schedule_state.h"
#include "arbiter/tenant/tenant.h"
#include "common/log.h"

static const char *name_of(const struct demand *demand) {
    static const char *const policies[POLICY_COUNT] = {"fixed", "burst", "best-effort"};
    return demand->is_group ? "group" : policies[demand->policy];
}

static void write_tenant(const struct tenant *tenant, int index, const char *card) {
    const struct turn_counts *counts = &tenant->counts;
    log_debug("turns of tenant %d, %s %" PRIu32 ", card %s: held_ns=%" PRIu64 " turns=%" PRIu64 " asked_back=%" PRIu64
              " drain_ns=%" PRIu64 " longest_drain_ns=%" PRIu64 " dones=%" PRIu64 " busy_dones=%" PRIu64
              " rest_ns=%" PRIu64,
              index, name_of(&tenant->demand), tenant->demand.guarantee, card, tenant->held_ns, counts->turns,
              counts->asked_back, counts->drain_ns, counts->longest_drain_ns, counts->dones, counts->busy_dones,
              counts->rest_ns);
}

void turn_log_write(const struct schedule *schedule, const char *card) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (schedule->tenants[i].is_taken) write_tenant(&schedule->tenants[i], (int)i, card);
}
