#include "arbiter/container/card_board.h"

#include <string.h>

#include "arbiter/connection/client_page.h"
#include "arbiter/container/container.h"
#include "arbiter/schedule/clients.h"
#include "arbiter/schedule/joint_turns.h"
#include "arbiter/schedule/schedule_run.h"
#include "arbiter/schedule/turn_log.h"
#include "arbiter/watermark/watermark_config.h"
#include "common/arithmetic.h"
#include "common/gpu_uuid.h"
#include "common/log.h"

/* Cards that can be in use at once. */
enum { BOARDS = 128 };

/* Three heartbeats within the timeout after which clients go on without the arbiter. */
#define HEARTBEAT_INTERVAL (ARBITRATION_HEARTBEAT_TIMEOUT_NS / 3)

static struct card_board boards[BOARDS];

static struct card_board *find(const uint8_t uuid[UUID_SIZE]) {
    for (unsigned i = 0; i < BOARDS; i++)
        if (boards[i].schedule && memcmp(boards[i].uuid, uuid, UUID_SIZE) == 0) return &boards[i];
    return NULL;
}

static struct card_board *open_board(struct card_board *board, const uint8_t uuid[UUID_SIZE]) {
    struct levels levels = watermark_config_levels(uuid);
    board->schedule = schedule_open(levels.high, levels.low);
    board->next_run_at = 0;
    memcpy(board->uuid, uuid, UUID_SIZE);
    return board->schedule ? board : NULL;
}

struct card_board *card_board_of(const uint8_t uuid[UUID_SIZE]) {
    struct card_board *found = find(uuid);
    for (unsigned i = 0; !found && i < BOARDS; i++)
        if (!boards[i].schedule) return open_board(&boards[i], uuid);
    return found;
}

int card_board_add(struct card_board *board, const struct demand *demand, uint64_t now) {
    return schedule_add(board->schedule, demand, now);
}

int card_board_group(const struct card_board *board, const uint8_t group[SPACE_GROUP_SIZE]) {
    for (int tenant = 0; tenant < SCHEDULE_TENANTS; tenant++) {
        const struct tenancy *first = board->tenancies[tenant];
        if (first && first->is_member && memcmp(first->group, group, SPACE_GROUP_SIZE) == 0) return tenant;
    }
    return SCHEDULE_NONE;
}

void card_board_change(struct card_board *board, int tenant, const struct demand *demand, uint64_t now) {
    schedule_set_demand(board->schedule, tenant, demand, now);
    card_board_touch(board);
}

void card_board_close_unused(struct card_board *board) {
    if (!board->schedule || !schedule_is_empty(board->schedule)) return;
    schedule_close(board->schedule);
    board->schedule = NULL;
}

void card_board_remove(struct card_board *board, int tenant) {
    schedule_remove(board->schedule, tenant);
    card_board_touch(board);
    card_board_close_unused(board);
}

unsigned card_board_number(const struct card_board *board) { return (unsigned)(board - boards); }

void card_board_touch(struct card_board *board) { board->next_run_at = 0; }

static void write_heartbeats(const struct card_board *board, uint64_t now) {
    for (int client = 0; client < SCHEDULE_CLIENTS; client++)
        if (board->pages[client]) client_page_write_heartbeat(board->pages[client], now);
}

static void publish_changes(struct card_board *board, uint64_t now) {
    int client;
    while ((client = clients_next_changed(board->schedule)) != SCHEDULE_NONE) {
        client_page_write_heartbeat(board->pages[client], now);
        client_page_publish(board->pages[client], schedule_page(board->schedule, client));
    }
}

/* The later of the two decides whether the card is busy. */
static struct container_use sum_of(const struct container_use *one, const struct container_use *other) {
    return (struct container_use){
        .busy_until = max_u64(one->busy_until, other->busy_until),
        .awaited_until = max_u64(one->awaited_until, other->awaited_until),
        .gpu_ns = saturating_add(one->gpu_ns, other->gpu_ns),
        .throttled_ns = saturating_add(one->throttled_ns, other->throttled_ns),
        .is_waiting = one->busy_until >= other->busy_until ? one->is_waiting : other->is_waiting};
}

struct container_use card_board_use(const struct card_board *board, int tenant) {
    struct container_use sum = {0};
    for (struct tenancy *tenancy = board->tenancies[tenant]; tenancy; tenancy = tenancy->next) {
        struct container_use use = container_use(tenancy->container, board->uuid, &tenancy->region_row);
        sum = sum_of(&use, &sum);
    }
    return sum;
}

static struct joint_use joint_use_of(const struct card_board *board, int tenant) {
    struct container_use use = card_board_use(board, tenant);
    uint64_t in_calls = 0;
    for (const struct tenancy *tenancy = board->tenancies[tenant]; tenancy; tenancy = tenancy->next)
        in_calls = saturating_add(in_calls, container_synchronize_ns(tenancy->container, tenancy->region_row));
    return (struct joint_use){
        .gpu_ns = use.gpu_ns, .waited_ns = saturating_add(use.throttled_ns, in_calls), .busy_until = use.busy_until};
}

static void log_mode(const struct card_board *board, bool is_joint) {
    char uuid[GPU_UUID_TEXT];
    gpu_uuid_write(board->uuid, uuid);
    log_debug("the containers of card %s hold turns %s", uuid, is_joint ? "jointly" : "one after the other");
}

void card_boards_log_turns(void) {
    char uuid[GPU_UUID_TEXT];
    for (unsigned i = 0; i < BOARDS; i++) {
        if (!boards[i].schedule) continue;
        gpu_uuid_write(boards[i].uuid, uuid);
        turn_log_write(boards[i].schedule, uuid);
    }
}

static void decide_on_joint_turns(struct card_board *board, uint64_t now) {
    for (int tenant = 0; tenant < SCHEDULE_TENANTS; tenant++) {
        if (!joint_turns_needs_use(board->schedule, tenant, now)) continue;
        struct joint_use use = joint_use_of(board, tenant);
        joint_turns_note_use(board->schedule, tenant, &use, now);
    }
    bool was_joint = joint_turns_are_on(board->schedule);
    joint_turns_run(board->schedule, now);
    if (joint_turns_are_on(board->schedule) != was_joint) log_mode(board, !was_joint);
}

static void check_holder_idle(struct card_board *board, uint64_t now) {
    int tenant = schedule_run_tenant_to_check(board->schedule, now);
    if (tenant == SCHEDULE_NONE) return;
    struct container_use use = card_board_use(board, tenant);
    schedule_run_note_use(board->schedule, use.busy_until, use.awaited_until, use.is_waiting, now);
}

static void run(struct card_board *board, uint64_t now) {
    check_holder_idle(board, now);
    board->next_run_at = schedule_run(board->schedule, now);
    publish_changes(board, now);
}

/* Without clients that check the heartbeat, the arbiter does not wake up for it. Each heartbeat also runs the schedule,
 * which counts the active tenants then. */
static void run_heartbeat(struct card_board *board, uint64_t now) {
    if (!schedule_needs_heartbeat(board->schedule)) {
        board->next_heartbeat_at = UINT64_MAX;
        return;
    }
    bool is_due = board->next_heartbeat_at == UINT64_MAX || now >= board->next_heartbeat_at;
    if (!is_due) return;
    write_heartbeats(board, now);
    decide_on_joint_turns(board, now);
    run(board, now);
    board->next_heartbeat_at = now + HEARTBEAT_INTERVAL;
}

int card_board_join(struct card_board *board, int tenant, struct arbitration_page *page, bool joins, uint64_t now) {
    int client = schedule_join(board->schedule, tenant, joins);
    if (client == SCHEDULE_NONE) return client;
    board->pages[client] = page;
    run(board, now);
    run_heartbeat(board, now);
    return client;
}

void card_board_leave(struct card_board *board, int client, uint64_t now) {
    schedule_leave(board->schedule, client, now);
    client_page_close(board->pages[client]);
    board->pages[client] = NULL;
    card_board_touch(board);
}

uint64_t card_boards_run(uint64_t now) {
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < BOARDS; i++) {
        struct card_board *board = &boards[i];
        if (!board->schedule) continue;
        if (board->next_run_at <= now) run(board, now);
        run_heartbeat(board, now);
        if (board->next_run_at < next) next = board->next_run_at;
        if (board->next_heartbeat_at < next) next = board->next_heartbeat_at;
    }
    return next;
}

void card_boards_set_watermarks(void) {
    for (unsigned i = 0; i < BOARDS; i++) {
        if (!boards[i].schedule) continue;
        struct levels levels = watermark_config_levels(boards[i].uuid);
        schedule_set_watermark(boards[i].schedule, levels.high, levels.low);
    }
}
