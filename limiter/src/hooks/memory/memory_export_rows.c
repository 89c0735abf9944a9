#include "hooks/memory/memory_export_rows.h"

#include <string.h>

#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/charge.h"
#include "common/arithmetic.h"
#include "container/container.h"
#include "region/account.h"
#include "region/identity.h"
#include "region/region.h"

/* Calls that the importing thread has open while it charges (charge/reconcile/reconcile.h). */
enum { OWN_CALL = 1 };

uint64_t memory_export_rows_key(const void *handle, size_t size) {
    const char *bytes = handle;
    uint64_t key = 1;
    for (size_t i = 0; i + sizeof key <= size; i += sizeof key) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        key = hash_mix(key, word);
    }
    return key;
}

/* Identifies this copy of the library (driver/loading.c) in this program: each copy has numbers of its own, and so has
 * the program that replaces this one by exec(). */
static uint64_t own_hash(void) {
    static const char copy;
    struct identity self = container_self();
    uint64_t process = hash_mix(hash_mix(hash_mix(1, self.pid), self.start_time), self.namespace);
    return hash_mix(hash_mix(process, identity_image()), (uintptr_t)&copy);
}

uint64_t memory_export_rows_group(uint64_t number) { return hash_mix(own_hash(), number) | 1; }

uint64_t memory_export_rows_physical_group(uint64_t number) {
    return memory_export_rows_group(number | 1ULL << 63); /* unlike any number of an IPC handle's chunk */
}

/* The caller holds LOCK_REGION. */
static bool add_locked(struct region *region, struct region_memory_export *row) {
    int slot = container_claim_slot(region);
    row->slot = (uint32_t)slot;
    return slot >= 0 && account_add_memory_export(region, row);
}

static bool add(struct region_memory_export *row) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    return region && add_locked(region, row);
}

void memory_export_rows_note_missing(void) {
    struct region *region = container_region();
    if (region) memory_exports_note_incomplete(region);
}

void memory_export_rows_add(struct region_memory_export row) {
    row.role = MEMORY_EXPORTER;
    if (!add(&row)) memory_export_rows_note_missing();
}

static bool is_incomplete(void) {
    const struct region *region = container_region();
    return region && memory_exports_is_incomplete(region);
}

/* Memory without a row is charged to its importers by NVML only. Where that fails, it stays charged here until NVML
 * answers, without its mark: a marked charge is added to NVML's figure. */
void memory_export_rows_end(uint64_t group, int card, uint64_t bytes, uint64_t managed) {
    if (is_incomplete() && !reconcile_others()) {
        charge_unmark_managed(card, managed);
        return;
    }
    release_shared((struct pending_export_end){
        .shared = group, .card = card, .bytes = bytes, .managed = managed, .kind = END_OF_EXPORT});
    reconcile_others();
}

/* The caller holds LOCK_REGION. */
static enum join_state join_locked(struct region *region, uint64_t key, struct region_memory_export *row) {
    if (!memory_exports_find(region, key, row)) return IMPORT_UNKNOWN;
    row->role = MEMORY_IMPORTER;
    if (!add_locked(region, row)) return IMPORT_UNKNOWN;
    return memory_exports_has_exporter(region, row->group) ? IMPORT_EXPORTED : IMPORT_ORPHANED;
}

enum join_state memory_export_rows_join(uint64_t key, struct region_memory_export *row) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    return region ? join_locked(region, key, row) : IMPORT_LOCKED;
}

static bool is_over(const uint8_t uuid[UUID_SIZE]) { return charge_of_container(uuid) > container_memory_limit(uuid); }

/* The row is added first, so that the memory is charged if NVML does not answer. */
bool memory_export_rows_charge(struct region_memory_export *row, const uint8_t uuid[UUID_SIZE]) {
    row->role = MEMORY_IMPORTER;
    row->group = row->key | 1;
    if (!add(row)) {
        memory_export_rows_note_missing();
        row->group = 0;
    }
    if (reconcile_own(uuid, OWN_CALL)) return true;
    if (row->group != 0 && is_over(uuid)) charge_trim_and_correct(uuid);
    return row->group != 0 && !is_over(uuid);
}

void memory_export_rows_drop(uint64_t group) {
    if (group) release_shared((struct pending_export_end){.shared = group, .card = -1, .kind = END_OF_IMPORT});
}
