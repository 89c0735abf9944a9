#include "region/pool_exports.h"

#include "common/arithmetic.h"

static bool is_free(const struct region_pool_export *row) {
    return row->role != POOL_EXPORTER && row->role != POOL_IMPORTER;
}

static bool is_same(const struct region_pool_export *row, const struct region_pool_export *other) {
    return row->role == other->role && row->key == other->key && row->slot == other->slot && row->pool == other->pool;
}

bool pool_exports_find(const struct region *region, uint64_t key, struct region_pool_export *found) {
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        *found = region->pool_exports[i];
        if (!is_free(found) && found->key == key) return true;
    }
    return false;
}

/* Index of the row that is equal to `row`, else of the first free row; -1 where there is neither. */
static int index_for(const struct region *region, const struct region_pool_export *row) {
    int free_row = -1;
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        if (is_same(&region->pool_exports[i], row)) return i;
        if (free_row < 0 && is_free(&region->pool_exports[i])) free_row = i;
    }
    return free_row;
}

/* Writes `role` last: if this process dies before, the row stays free. */
bool pool_exports_add(struct region *region, const struct region_pool_export *row) {
    int index = index_for(region, row);
    if (index < 0) return false;
    struct region_pool_export *target = &region->pool_exports[index];
    if (!is_free(target)) return true;
    struct region_pool_export unfinished = *row;
    unfinished.role = POOL_EXPORT_FREE;
    *target = unfinished;
    __atomic_store_n(&target->role, row->role, __ATOMIC_RELEASE);
    return true;
}

bool pool_exports_end(struct region *region, int slot, uint64_t pool) {
    bool had_rows = false;
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        struct region_pool_export *row = &region->pool_exports[i];
        if (is_free(row) || row->slot != (uint32_t)slot || (pool != EVERY_POOL && row->pool != pool)) continue;
        __atomic_store_n(&row->role, POOL_EXPORT_FREE, __ATOMIC_RELEASE);
        had_rows = true;
    }
    return had_rows;
}

static bool has_role_on(const struct region_pool_export *row, uint32_t role, int card) {
    return row->role == role && row->card == (uint32_t)card;
}

/* Whether the memory of row `index` is charged by another row: an exporter's, or an earlier importer's. */
static bool is_charged_elsewhere(const struct region *region, int index) {
    const struct region_pool_export *row = &region->pool_exports[index];
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        const struct region_pool_export *other = &region->pool_exports[i];
        if (other->group != row->group || other->card != row->card || i == index) continue;
        if (other->role == POOL_EXPORTER || (other->role == POOL_IMPORTER && i < index)) return true;
    }
    return false;
}

uint64_t pool_exports_orphaned_bytes(const struct region *region, int card) {
    uint64_t bytes = 0;
    for (int i = 0; i < REGION_POOL_EXPORTS; i++)
        if (has_role_on(&region->pool_exports[i], POOL_IMPORTER, card) && !is_charged_elsewhere(region, i))
            bytes = saturating_add(bytes, region->pool_exports[i].bytes);
    return bytes;
}

/* Whether an earlier row of the process exports the memory of row `index` too. */
static bool is_exported_before(const struct region *region, int index) {
    const struct region_pool_export *row = &region->pool_exports[index];
    for (int i = 0; i < index; i++) {
        const struct region_pool_export *other = &region->pool_exports[i];
        if (has_role_on(other, POOL_EXPORTER, (int)row->card) && other->slot == row->slot && other->group == row->group)
            return true;
    }
    return false;
}

uint64_t pool_exports_exported_bytes(const struct region *region, int slot, int card) {
    uint64_t bytes = 0;
    for (int i = 0; i < REGION_POOL_EXPORTS; i++) {
        const struct region_pool_export *row = &region->pool_exports[i];
        if (has_role_on(row, POOL_EXPORTER, card) && row->slot == (uint32_t)slot && !is_exported_before(region, i))
            bytes = saturating_add(bytes, row->bytes);
    }
    return bytes;
}
