#include "region/memory_exports.h"

#include <string.h>

#include "common/arithmetic.h"

/* What the rows of one group on one card say. */
enum {
    HAS_EXPORTER = 1,
    HAS_IMPORTER = 2,
    HAS_UNMEASURED = 4,    /* an importer for which no figure of NVML's is charged yet */
    IS_EXPORTED_BY_US = 8, /* the process that is asked about exports it */
};

/* 16 bits, because thousands of them stand on the stack of a thread of the program. */
struct group {
    uint16_t first : 12; /* the group's first row */
    uint16_t marks : 4;  /* of the above */
};

static_assert(REGION_MEMORY_EXPORTS <= 1 << 12, "a row's index has 12 bits");

/* The groups of one card, in the order of their numbers. Built for each sum: state that is kept could be wrong after a
 * process was killed. */
struct groups {
    uint32_t count;
    struct group list[REGION_MEMORY_EXPORTS];
};

/* Read once: a process of the container may write any number at any moment, without the lock. */
static uint32_t high_of(const struct region *region) {
    uint32_t high = __atomic_load_n(&region->memory_exports.high, __ATOMIC_RELAXED);
    return high > REGION_MEMORY_EXPORTS ? REGION_MEMORY_EXPORTS : high;
}

static bool is_used(const struct region_memory_export *row) {
    return row->role == MEMORY_EXPORTER || row->role == MEMORY_IMPORTER;
}

bool memory_exports_any(const struct region *region) { return high_of(region) != 0; }

bool memory_exports_find(const struct region *region, uint64_t key, struct region_memory_export *found) {
    for (uint32_t i = 0; i < high_of(region); i++) {
        const struct region_memory_export *row = &region->memory_exports.rows[i];
        if (row->key != key || !is_used(row)) continue;
        *found = *row;
        return true;
    }
    return false;
}

bool memory_exports_has_exporter(const struct region *region, uint64_t group) {
    for (uint32_t i = 0; i < high_of(region); i++) {
        const struct region_memory_export *row = &region->memory_exports.rows[i];
        if (row->role == MEMORY_EXPORTER && row->group == group) return true;
    }
    return false;
}

/* The holders of the group change, so NVML may count it for another importer than before. */
static void forget_measurements(struct region *region, uint64_t group) {
    for (uint32_t i = 0; i < high_of(region); i++)
        if (region->memory_exports.rows[i].group == group) region->memory_exports.rows[i].state = MEMORY_UNMEASURED;
}

/* Writes `role` last: if this process dies before, the row stays free. */
static void write_row(struct region *region, uint32_t index, const struct region_memory_export *row) {
    struct region_memory_export *target = &region->memory_exports.rows[index];
    *target = *row;
    target->role = MEMORY_EXPORT_FREE;
    target->state = MEMORY_UNMEASURED;
    target->references = 1;
    if (index >= high_of(region)) region->memory_exports.high = index + 1;
    __atomic_store_n(&target->role, row->role, __ATOMIC_RELEASE);
}

static bool is_same(const struct region_memory_export *row, const struct region_memory_export *other) {
    return row->role == other->role && row->slot == other->slot && row->group == other->group &&
           (row->role == MEMORY_IMPORTER || row->key == other->key);
}

bool memory_exports_add(struct region *region, const struct region_memory_export *row) {
    uint32_t free_row = high_of(region);
    for (uint32_t i = 0; i < high_of(region); i++) {
        struct region_memory_export *other = &region->memory_exports.rows[i];
        if (is_used(other) && is_same(row, other)) {
            other->references++;
            return true;
        }
        if (!is_used(other) && i < free_row) free_row = i;
    }
    if (free_row == REGION_MEMORY_EXPORTS) return false;
    forget_measurements(region, row->group);
    write_row(region, free_row, row);
    return true;
}

static void lower_high(struct region *region) {
    uint32_t high = high_of(region);
    while (high > 0 && !is_used(&region->memory_exports.rows[high - 1])) high--;
    region->memory_exports.high = high;
}

/* Measurements are forgotten before the row ends: if this process dies in between, nothing is charged too little. */
static void end_row(struct region *region, struct region_memory_export *row) {
    forget_measurements(region, row->group);
    __atomic_store_n(&row->role, MEMORY_EXPORT_FREE, __ATOMIC_RELEASE);
}

bool memory_exports_drop(struct region *region, int slot, uint64_t group) {
    for (uint32_t i = 0; i < high_of(region); i++) {
        struct region_memory_export *row = &region->memory_exports.rows[i];
        if (row->role != MEMORY_IMPORTER || row->slot != (uint32_t)slot || row->group != group) continue;
        if (row->references-- > 1) return false;
        end_row(region, row);
        lower_high(region);
        return true;
    }
    return false;
}

bool memory_exports_end(struct region *region, int slot, uint32_t role, uint64_t group) {
    bool had_rows = false;
    for (uint32_t i = 0; i < high_of(region); i++) {
        struct region_memory_export *row = &region->memory_exports.rows[i];
        bool has_role = role == EVERY_ROLE ? is_used(row) : row->role == role;
        if (!has_role || row->slot != (uint32_t)slot || (group != EVERY_GROUP && row->group != group)) continue;
        end_row(region, row);
        had_rows = true;
    }
    if (had_rows) lower_high(region);
    return had_rows;
}

void memory_exports_measure(struct region *region, int slot, int card) {
    for (uint32_t i = 0; i < high_of(region); i++) {
        struct region_memory_export *row = &region->memory_exports.rows[i];
        if (row->slot == (uint32_t)slot && row->card == (uint32_t)card) row->state = MEMORY_MEASURED;
    }
}

/* The place of a group's entry in the list, or the one where it belongs. A process of the container may write into the
 * rows meanwhile; the place is never beyond the list's end. */
static uint32_t place_of(const struct region *region, const struct groups *groups, uint64_t group) {
    uint32_t low = 0, high = groups->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (region->memory_exports.rows[groups->list[middle].first].group < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct region *region, const struct groups *groups, uint32_t place, uint64_t group) {
    return place < groups->count && region->memory_exports.rows[groups->list[place].first].group == group;
}

static struct group *find_or_add_group(const struct region *region, struct groups *groups, uint32_t index) {
    uint64_t group = region->memory_exports.rows[index].group;
    uint32_t place = place_of(region, groups, group);
    struct group *found = &groups->list[place];
    if (is_at(region, groups, place, group)) return found;
    memmove(found + 1, found, (groups->count - place) * sizeof *found);
    groups->count++;
    *found = (struct group){.first = index & 0xfff};
    return found;
}

static unsigned marks_of(const struct region_memory_export *row, int slot, int measured) {
    if (row->role == MEMORY_EXPORTER) return HAS_EXPORTER | (row->slot == (uint32_t)slot ? IS_EXPORTED_BY_US : 0);
    bool is_measured = row->state == MEMORY_MEASURED || row->slot == (uint32_t)measured;
    return HAS_IMPORTER | (is_measured ? 0 : HAS_UNMEASURED);
}

static bool is_on(const struct region_memory_export *row, int card) {
    return is_used(row) && row->card == (uint32_t)card;
}

static void find_groups(const struct region *region, int card, int slot, int measured, struct groups *groups) {
    groups->count = 0;
    for (uint32_t i = 0; i < high_of(region); i++) {
        const struct region_memory_export *row = &region->memory_exports.rows[i];
        if (!is_on(row, card)) continue;
        struct group *group = find_or_add_group(region, groups, i);
        group->marks = (group->marks | marks_of(row, slot, measured)) & 0xf;
    }
}

/* Bytes of the groups that have all of `wanted` and none of `unwanted`. */
static uint64_t sum(const struct region *region, const struct groups *groups, unsigned wanted, unsigned unwanted) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < groups->count; i++) {
        struct group group = groups->list[i];
        if ((group.marks & wanted) == wanted && (group.marks & unwanted) == 0)
            bytes = saturating_add(bytes, region->memory_exports.rows[group.first].bytes);
    }
    return bytes;
}

uint64_t memory_exports_orphaned_bytes(const struct region *region, int card, int measured) {
    struct groups groups;
    find_groups(region, card, NO_SLOT, measured, &groups);
    return sum(region, &groups, HAS_IMPORTER | HAS_UNMEASURED, HAS_EXPORTER);
}

uint64_t memory_exports_shared_bytes(const struct region *region, int slot, int card) {
    struct groups groups;
    find_groups(region, card, slot, NO_SLOT, &groups);
    return sum(region, &groups, IS_EXPORTED_BY_US | HAS_IMPORTER, 0);
}

void memory_exports_note_incomplete(struct region *region) {
    __atomic_store_n(&region->memory_exports.is_incomplete, 1, __ATOMIC_RELAXED);
}

bool memory_exports_is_incomplete(const struct region *region) {
    return __atomic_load_n(&region->memory_exports.is_incomplete, __ATOMIC_RELAXED) != 0;
}
