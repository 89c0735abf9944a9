#include "charge/release/release.h"

#include "container/container.h"

void release_apply_deferred(struct region *region, int slot) {
    pending_export_ends_apply(region, slot);
    deferred_updates_apply(region, slot);
}

static void apply_now(struct region *region) {
    HELD_REGION struct region *locked = region_hold(region, REGION_LOCK_MS);
    if (!locked) return;
    int slot = container_slot(locked);
    if (slot >= 0) release_apply_deferred(locked, slot);
}

void release_update(enum update update, int card, uint64_t bytes) {
    struct region *region = container_region();
    if (!region) return;
    deferred_updates_add(update, card, bytes);
    apply_now(region);
}

void release_charge(int card, uint64_t bytes) { release_update(UPDATE_RELEASE, card, bytes); }

void release_managed(int card, uint64_t bytes) {
    deferred_updates_add(UPDATE_UNMARK_MANAGED, card, bytes);
    release_update(UPDATE_RELEASE, card, bytes);
}

void release_shared(struct pending_export_end end) {
    struct region *region = container_region();
    if (region && pending_export_ends_add(end)) apply_now(region);
}
