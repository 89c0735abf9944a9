#include "region/pool_exports.h"

#include "common/arithmetic.h"

static bool is_free(const struct region_pool_export *row) {
    return row->kind != POOL_EXPORTER && row->kind != POOL_IMPORTER;
}

static bool is_same(const struct region_pool_export *row, const struct region_pool_export *other) {
    return row->kind == other->kind && row->key == other->key && row->slot == other->slot && row->pool == other->pool;
}

bool pool_exports_find(const struct region *region, uint64_t key, struct region_pool_export *found) {
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        *found = region->pool_exports[i];
        if (!is_free(found) && found->key == key) return true;
    }
    return false;
}

/* The place of a row, or the first that it may take; -1 where there is neither. */
static int place_of(const struct region *region, const struct region_pool_export *row) {
    int room = -1;
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        if (is_same(&region->pool_exports[i], row)) return i;
        if (room < 0 && is_free(&region->pool_exports[i])) room = i;
    }
    return room;
}

/* Its kind last: should we die before, there is no row. */
bool pool_exports_add(struct region *region, const struct region_pool_export *row) {
    int place = place_of(region, row);
    if (place < 0) return false;
    struct region_pool_export *into = &region->pool_exports[place];
    if (!is_free(into)) return true;
    struct region_pool_export unfinished = *row;
    unfinished.kind = POOL_EXPORT_FREE;
    *into = unfinished;
    __atomic_store_n(&into->kind, row->kind, __ATOMIC_RELEASE);
    return true;
}

bool pool_exports_end(struct region *region, int slot, uint64_t pool) {
    bool any = false;
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        struct region_pool_export *row = &region->pool_exports[i];
        if (is_free(row) || row->slot != (uint32_t)slot || (pool != EVERY_POOL && row->pool != pool)) continue;
        __atomic_store_n(&row->kind, POOL_EXPORT_FREE, __ATOMIC_RELEASE);
        any = true;
    }
    return any;
}

static bool is_of(const struct region_pool_export *row, uint32_t kind, int card) {
    return row->kind == kind && row->card == (uint32_t)card;
}

/* Whether a row of the same memory stands before this one, or a maker's anywhere. */
static bool is_counted(const struct region *region, int at) {
    const struct region_pool_export *row = &region->pool_exports[at];
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        const struct region_pool_export *other = &region->pool_exports[i];
        if (other->group != row->group || other->card != row->card || i == at) continue;
        if (other->kind == POOL_EXPORTER || (other->kind == POOL_IMPORTER && i < at)) return true;
    }
    return false;
}

uint64_t pool_exports_orphaned_bytes(const struct region *region, int card) {
    uint64_t bytes = 0;
    for (int i = 0; i < REGION_POOL_EXPORTS; i++)
        if (is_of(&region->pool_exports[i], POOL_IMPORTER, card) && !is_counted(region, i))
            bytes = saturating_add(bytes, region->pool_exports[i].bytes);
    return bytes;
}

/* Whether the process has a row of the same memory before this one. */
static bool is_made_before(const struct region *region, int at) {
    const struct region_pool_export *row = &region->pool_exports[at];
    for (int i = 0; i < at; i++) {
        const struct region_pool_export *other = &region->pool_exports[i];
        if (is_of(other, POOL_EXPORTER, (int)row->card) && other->slot == row->slot && other->group == row->group)
            return true;
    }
    return false;
}

uint64_t pool_exports_exported_bytes(const struct region *region, int slot, int card) {
    uint64_t bytes = 0;
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        const struct region_pool_export *row = &region->pool_exports[i];
        if (is_of(row, POOL_EXPORTER, card) && row->slot == (uint32_t)slot && !is_made_before(region, i))
            bytes = saturating_add(bytes, row->bytes);
    }
    return bytes;
}
