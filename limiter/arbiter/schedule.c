#include <stdlib.h>

#include "common/arithmetic.h"
#include "parts.h"

/* What is left of a turn that its client is done with is no longer, whatever it says. */
#define REST_MOST (250 * NS_PER_MS)

struct schedule *schedule_open(unsigned high, unsigned low) {
    struct schedule *schedule = calloc(1, sizeof *schedule);
    if (!schedule) return NULL;
    schedule->watermark = watermark_made(high, low);
    schedule->patience = patience_made(0);
    schedule->turn = (struct holding){.tenant = SCHEDULE_NONE, .client = SCHEDULE_NONE};
    schedule->urgent = schedule->last = SCHEDULE_NONE;
    schedule->free_client = SCHEDULE_NONE;
    return schedule;
}

void schedule_close(struct schedule *schedule) { free(schedule); }

void schedule_set_watermark(struct schedule *schedule, unsigned high, unsigned low) {
    schedule->watermark.high = high;
    schedule->watermark.low = low;
}

static int free_place(struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (!schedule->tenants[i].is_taken) return i;
    return schedule->tenants_high < SCHEDULE_TENANTS ? schedule->tenants_high++ : SCHEDULE_NONE;
}

int schedule_add(struct schedule *schedule, const struct ask *ask, uint64_t now) {
    int place = free_place(schedule);
    if (place == SCHEDULE_NONE) return SCHEDULE_NONE;
    schedule->tenants[place] = tenant_made(ask, now);
    schedule->tenants[place].pace = schedule->tenants[place].left_pace = schedule->pace;
    return place;
}

void schedule_change(struct schedule *schedule, int tenant, const struct ask *ask, uint64_t now) {
    struct tenant *changed = &schedule->tenants[tenant];
    if (ask_is_same(&changed->ask, ask)) return;
    holding_count(schedule, now);
    tenant_refill(changed, now);
    changed->ask = *ask;
    changed->pace = changed->left_pace = schedule->pace; /* what it held was counted by another weight */
    schedule->is_stale = true;
}

void schedule_remove(struct schedule *schedule, int tenant) { schedule->tenants[tenant].is_taken = false; }

bool schedule_is_empty(const struct schedule *schedule) {
    for (int32_t i = 0; i < schedule->tenants_high; i++)
        if (schedule->tenants[i].is_taken) return false;
    return true;
}

/* It is there from now on, which those who have the card to themselves must be told. */
static void see(struct schedule *schedule, struct tenant *tenant, uint64_t now) {
    bool was_active = tenant_is_active(tenant, now);
    tenant->seen_at = now;
    if (!was_active) schedule->is_stale = true;
    if (schedule->is_stale) shown_refresh(schedule, now);
}

/* Who has the turn, and whom its page tells so, needs none. */
void schedule_want(struct schedule *schedule, int client, uint64_t now) {
    struct tenant *tenant = &schedule->tenants[schedule->clients[client].tenant];
    bool has_turn = schedule->turn.number && schedule->turn.client == client && schedule->turn.ends_at == 0;
    holding_count(schedule, now);
    see(schedule, tenant, now);
    if (!tenant->is_contended) {
        shown_turn(schedule, client, shown_new_number(schedule), UINT64_MAX, UINT64_MAX);
        return;
    }
    if (has_turn) {
        foresight_end(schedule, true, now);
        return;
    }
    if (clients_is_away(schedule, tenant)) {
        tenant_return(tenant, schedule->pace);
        tenant_come(tenant, client, now);
    }
    clients_wait(schedule, client, now);
    holding_contest(schedule, now);
}

void schedule_done(struct schedule *schedule, int client, uint32_t number, uint64_t rest, uint64_t now) {
    struct holding *turn = &schedule->turn;
    if (schedule->clients[client].page.turn == number) shown_turn(schedule, client, 0, 0, 0);
    if (!turn->number || turn->number != number || turn->client != client) return;
    uint64_t ends_at = max_u64(now + min_u64(rest, REST_MOST), turn->began);
    if (turn->ends_at && turn->ends_at <= ends_at) return;
    holding_count(schedule, now);
    holding_finish(schedule, ends_at, now);
}

bool schedule_is_watched(const struct schedule *schedule) { return schedule->connected > 1 || schedule->waiting; }

const struct arbitration_page *schedule_page(const struct schedule *schedule, int client) {
    return &schedule->clients[client].page;
}

uint64_t schedule_held_ns(const struct schedule *schedule, int tenant) { return schedule->tenants[tenant].held_ns; }
