/* Runs the schedule over long random histories, and parses random configurations; built with the sanitizers by
 * test_sanitized.py. Exit code 0, the one of a sanitizer, or an abort if a check fails. */
#include <stdlib.h>
#include <string.h>

#include "arbiter/watermark/watermark_config.h"
#include "arbiter/connection/rate_limit.h"
#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/joint_turns.h"
#include "arbiter/schedule/schedule.h"
#include "arbiter/schedule/schedule_run.h"

enum { TENANTS = 12, CLIENTS = 40, STEPS = 60000, NOBODY = -1 };

static unsigned long long state;

static unsigned next(unsigned most) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % most;
}

static uint64_t any(void) {
    static const uint64_t odd[] = {0, 1, 1000000, 300000000, UINT64_MAX, UINT64_MAX - 1, 1ULL << 63};
    return next(3) ? next(20000000) : odd[next(sizeof odd / sizeof *odd)];
}

/* Whether a tenant is a group stays as it is. */
static bool is_group(int place) { return place % 3 == 0; }

static struct demand any_demand(int place) {
    unsigned cores = next(100);
    enum compute_policy policy = (enum compute_policy)next(POLICY_COUNT);
    bool has_share = cores && policy != POLICY_BEST_EFFORT;
    return (struct demand){policy, has_share ? cores : 0, cores ? cores : 1, next(4), is_group(place)};
}

struct history {
    struct schedule *schedule;
    int tenants[TENANTS];
    int clients[CLIENTS];
    int owners[CLIENTS];
    uint64_t now;
};

static void change_tenant(struct history *history, int place) {
    struct demand demand = any_demand(place);
    int *tenant = &history->tenants[place];
    if (*tenant == NOBODY) {
        *tenant = schedule_add(history->schedule, &demand, history->now);
        return;
    }
    for (int i = 0; i < CLIENTS; i++)
        if (history->clients[i] != NOBODY && history->owners[i] == place) {
            schedule_set_demand(history->schedule, *tenant, &demand, history->now);
            return;
        }
    schedule_remove(history->schedule, *tenant);
    *tenant = NOBODY;
}

static void change_client(struct history *history, int place) {
    int *client = &history->clients[place];
    int tenant = (int)next(TENANTS);
    if (*client != NOBODY) {
        schedule_leave(history->schedule, *client, history->now);
        *client = NOBODY;
    } else if (history->tenants[tenant] != NOBODY) {
        *client = schedule_join(history->schedule, history->tenants[tenant], next(2));
        history->owners[place] = tenant;
    }
}

static void send_random_message(struct history *history, int client) {
    uint32_t turn = schedule_page(history->schedule, client)->turn;
    if (next(2))
        schedule_want(history->schedule, client, any(), any(), history->now);
    else
        schedule_done(history->schedule, client, next(4) ? turn : (uint32_t)any(), any(), next(2), history->now);
}

static void note_random_uses(struct history *history) {
    for (int tenant = 0; tenant < TENANTS; tenant++) {
        int index = history->tenants[tenant];
        struct joint_use use = {next(2) ? any() : history->now / 2, any(), any()};
        if (index != NOBODY && joint_turns_needs_use(history->schedule, index, history->now))
            joint_turns_note_use(history->schedule, index, &use, history->now);
    }
    joint_turns_run(history->schedule, history->now);
}

/* At most one client has a turn on the contended card, or clients of one group have parts of it, unless all hold turns
 * jointly; and the next run is in the future. */
static void run_and_check(struct history *history) {
    int turns = 0, joint = 0, owner = NOBODY;
    bool is_one_turn = true;
    if (next(3) == 0) note_random_uses(history);
    int tenant = schedule_run_tenant_to_check(history->schedule, history->now);
    if (tenant != NOBODY) schedule_run_note_use(history->schedule, next(2) ? history->now + any() : any(), next(2) ? any() : 0, next(2), history->now);
    uint64_t due = schedule_run(history->schedule, history->now);
    for (int i = 0; i < CLIENTS; i++) {
        if (history->clients[i] == NOBODY) continue;
        const struct arbitration_page *page = schedule_page(history->schedule, history->clients[i]);
        joint += page->turn && page->contended && page->joint;
        if (page->turn && page->contended && !page->joint) {
            is_one_turn &= turns++ == 0 || (is_group(history->owners[i]) && owner == history->owners[i]);
            owner = history->owners[i];
        }
        if (page->fallback_percent < 1 || page->fallback_percent > 100) abort();
        if (page->turn && page->contended && (page->budget_ns < 1000000 || page->depth_ns < 100000)) abort();
    }
    if (!is_one_turn || (turns && joint) || (joint && !joint_turns_are_on(history->schedule)) || due <= history->now)
        abort();
    while (clients_next_changed(history->schedule) != NOBODY) continue;
}

static void run_history(void) {
    struct history history = {.schedule = schedule_open(90, 70), .now = 1000000000000ULL};
    memset(history.tenants, 0xff, sizeof history.tenants);
    memset(history.clients, 0xff, sizeof history.clients);
    for (int i = 0; i < STEPS; i++) {
        int client = (int)next(CLIENTS);
        history.now += next(4) ? next(2000000) : next(40) ? next(50000000) : next(4000000000U);
        if (next(40) == 0)
            change_tenant(&history, (int)next(TENANTS));
        else if (history.clients[client] == NOBODY || next(30) == 0)
            change_client(&history, client);
        else if (next(6))
            send_random_message(&history, history.clients[client]);
        run_and_check(&history);
    }
    schedule_close(history.schedule);
}

static void read_texts(void) {
    static const char alphabet[] = "0123456789 *#\n\t-GPU-abcdef";
    static const uint8_t uuid[UUID_SIZE] = {15};
    for (unsigned i = 0; i < 20000; i++) {
        unsigned length = next(300), line;
        char *text = malloc(length + 1); /* the exact size, so that the sanitizer sees a read beyond it */
        for (unsigned at = 0; at < length; at++) text[at] = alphabet[next(sizeof alphabet - 1)];
        if (length > 50) memcpy(text, "GPU-00000000-0000-0000-0000-00000000000f 90 70\n", 47);
        text[length] = 0;
        watermark_config_parse(text, &line);
        struct levels levels = watermark_config_levels(uuid);
        if (levels.high > 100 || levels.low >= levels.high) abort();
        free(text);
    }
}

static void count_messages(void) {
    uint64_t now = 1000000000000ULL, allowed = 0;
    struct rate_limit rate = rate_limit_new(2000, now);
    for (uint64_t end = now + 10000000000ULL; now < end; now += next(200000)) allowed += rate_limit_allows(&rate, now);
    if (allowed < 20000 || allowed > 22001) abort();
}

int main(int count, char **arguments) {
    state = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    run_history();
    read_texts();
    count_messages();
    return 0;
}
