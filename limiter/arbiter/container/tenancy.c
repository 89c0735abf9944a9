#include "arbiter/container/tenancy.h"

#include "arbiter/container/card_board.h"
#include "arbiter/tenant/demand.h"

/* Entries of a container's table that are free have no board. */
static struct tenancy *free_entry(struct container *container) { return container_tenancy(container, NULL); }

struct tenancy *tenancy_of(struct container *container, struct card_board *board, uint64_t now) {
    struct demand demand;
    struct tenancy *present = container_tenancy(container, board);
    if (present) return present;
    struct tenancy *added = free_entry(container);
    if (!added || !demand_of(&container->limits, board->uuid, &demand)) return NULL;
    int tenant = card_board_add(board, container, &demand, now);
    if (tenant == SCHEDULE_NONE) return NULL;
    *added = (struct tenancy){.board = board, .tenant = tenant};
    return added;
}

void tenancy_update_all(struct container *container, uint64_t now) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        struct tenancy *tenancy = &container->tenancies[i];
        struct demand demand;
        if (!tenancy->board) continue;
        demand_of(&container->limits, tenancy->board->uuid, &demand);
        card_board_change(tenancy->board, tenancy->tenant, &demand, now);
    }
}

void tenancy_end_all(struct container *container) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++)
        if (container->tenancies[i].board)
            card_board_remove(container->tenancies[i].board, container->tenancies[i].tenant);
}
