#include "charge/reserve/refusals.h"

#include <stdbool.h>

#include "common/gpu_uuid.h"
#include "common/limits.h"
#include "common/log.h"
#include "container/container.h"
#include "region/account.h"

static int find_or_add_card(struct region *region, const uint8_t uuid[UUID_SIZE]) {
    int card = account_find_card(region, uuid);
    if (card >= 0) return card;
    HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
    return locked ? account_find_or_add_card(locked, uuid) : card;
}

/* Text for the end of the log line, for refusals that `used` and `limit` do not explain. */
static const char *reason(const struct region *region, uint64_t bytes, uint64_t used, uint64_t limit) {
    if (!region) return ": there is no region to account for it, so nothing can be allocated";
    bool has_room = used <= limit && bytes <= limit - used;
    return has_room ? ": the region was locked or full, or usage or limit has changed since" : "";
}

void refusals_report(const char *function_name, const uint8_t uuid[UUID_SIZE], uint64_t bytes) {
    struct region *region = container_region();
    int card = region ? find_or_add_card(region, uuid) : -1;
    uint64_t limit = container_memory_limit(uuid);
    uint64_t used = region ? account_used(region, card) : 0;
    char card_name[GPU_UUID_TEXT];
    if (region) account_count_refusal(region, card);
    gpu_uuid_write(uuid, card_name);
    log_warn("%s refused: %llu bytes asked, %llu used, limit %llu on %s%s", function_name, (unsigned long long)bytes,
             (unsigned long long)used, (unsigned long long)limit, card_name, reason(region, bytes, used, limit));
}
