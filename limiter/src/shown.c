/* What is charged, as it is shown: as far as the dead and the unannounced can be seen now and then. */
#include "account.h"
#include "changes.h"
#include "charge.h"
#include "growth.h"
#include "place.h"
#include "reaping.h"
#include "settle.h"

/* The region as the view shows it, or NULL. */
static struct region *region_to_view(const uint8_t uuid[UUID_SIZE]) {
    struct region *region = place_region();
    if (region && reaping_if_due(region)) changes_look();
    if (region) growth_look_on(uuid, 0);
    if (region) settle_if_due(uuid, 0, true);
    return region;
}

uint64_t charge_used(const uint8_t uuid[UUID_SIZE]) {
    const struct region *region = region_to_view(uuid);
    return region ? account_used(region, account_find_card(region, uuid)) : 0;
}

bool charge_of_process(uint32_t pid, const uint8_t uuid[UUID_SIZE], uint64_t *bytes) {
    const struct region *region = region_to_view(uuid);
    int card = region ? account_find_card(region, uuid) : -1;
    return region && account_of_process(region, pid, place_self().namespace, card, bytes);
}
