#include "arbiter/container/tenancy.h"

#include <string.h>

#include "arbiter/container/card_board.h"
#include "arbiter/tenant/demand.h"

/* Entries of a container's table that are free have no board. */
static struct tenancy *find(struct container *container, const struct card_board *board, bool is_member) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        struct tenancy *tenancy = &container->tenancies[i];
        if (tenancy->board == board && (!board || tenancy->is_member == is_member)) return tenancy;
    }
    return NULL;
}

static struct demand demand_of_group(const struct card_board *board, int tenant) {
    struct demand sum = demand_of_empty_group();
    for (const struct tenancy *member = board->tenancies[tenant]; member; member = member->next)
        demand_add_member(&sum, &member->container->limits, board->uuid);
    return sum;
}

/* Puts it before the others of its tenant. */
static void list(struct tenancy *added) {
    struct tenancy **first = &added->board->tenancies[added->tenant];
    added->next = *first;
    *first = added;
}

static void unlist(const struct tenancy *ended) {
    struct tenancy **place = &ended->board->tenancies[ended->tenant];
    while (*place != ended) place = &(*place)->next;
    *place = ended->next;
}

static bool own_demand(const struct container *container, const struct card_board *board, struct demand *demand) {
    if (!demand_of(&container->limits, board->uuid, demand)) return false;
    if (container->is_bounded) demand_lower(demand, &container->bound);
    return true;
}

static bool begin_own(struct tenancy *added, struct card_board *board, struct container *container, uint64_t now) {
    struct demand demand;
    if (!own_demand(container, board, &demand)) return false;
    int tenant = card_board_add(board, &demand, now);
    if (tenant == SCHEDULE_NONE) return false;
    *added = (struct tenancy){.container = container, .board = board, .tenant = tenant};
    list(added);
    return true;
}

/* The first member makes the group a tenant. */
static bool begin_membership(struct tenancy *added, struct card_board *board, struct container *container,
                             uint64_t now) {
    struct demand demand = demand_of_empty_group();
    demand_add_member(&demand, &container->limits, board->uuid);
    int present = card_board_group(board, container->limits.space_group);
    int tenant = present != SCHEDULE_NONE ? present : card_board_add(board, &demand, now);
    if (tenant == SCHEDULE_NONE) return false;
    *added = (struct tenancy){.container = container, .board = board, .tenant = tenant, .is_member = true};
    memcpy(added->group, container->limits.space_group, sizeof added->group);
    list(added);
    demand = demand_of_group(board, tenant);
    card_board_change(board, tenant, &demand, now);
    return true;
}

struct tenancy *tenancy_of(struct container *container, struct card_board *board, bool is_member, uint64_t now) {
    struct tenancy *present = find(container, board, is_member);
    if (present) return present;
    struct tenancy *added = find(container, NULL, false);
    if (!added) return NULL;
    return (is_member ? begin_membership : begin_own)(added, board, container, now) ? added : NULL;
}

void tenancy_update_all(struct container *container, uint64_t now) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        struct tenancy *tenancy = &container->tenancies[i];
        struct demand demand;
        if (!tenancy->board) continue;
        if (tenancy->is_member)
            demand = demand_of_group(tenancy->board, tenancy->tenant);
        else
            own_demand(container, tenancy->board, &demand);
        card_board_change(tenancy->board, tenancy->tenant, &demand, now);
    }
}

bool tenancy_has_left_group(const struct container *container) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        const struct tenancy *tenancy = &container->tenancies[i];
        if (tenancy->board && tenancy->is_member &&
            memcmp(tenancy->group, container->limits.space_group, sizeof tenancy->group) != 0)
            return true;
    }
    return false;
}

static void end(struct tenancy *tenancy, uint64_t now) {
    struct card_board *board = tenancy->board;
    unlist(tenancy);
    tenancy->board = NULL;
    if (board->tenancies[tenancy->tenant]) {
        struct demand demand = demand_of_group(board, tenancy->tenant);
        card_board_change(board, tenancy->tenant, &demand, now);
    } else {
        card_board_remove(board, tenancy->tenant);
    }
}

void tenancy_end_all(struct container *container, uint64_t now) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++)
        if (container->tenancies[i].board) end(&container->tenancies[i], now);
}
