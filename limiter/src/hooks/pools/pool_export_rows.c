#include "hooks/pools/pool_export_rows.h"

#include <string.h>

#include "books/pools/pools.h"
#include "common/arithmetic.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "region/account.h"
#include "region/region.h"

bool pool_export_rows_extent(CUdeviceptr pointer, struct extent *extent) {
    CUdeviceptr base;
    size_t size;
    if (REAL(cuMemGetAddressRange_v2)(&base, &size, pointer) != CUDA_SUCCESS || size == 0) return false;
    uint64_t first_step = base / POOL_STEP;
    *extent = (struct extent){base, size, first_step, (base + size - 1) / POOL_STEP - first_step + 1};
    return true;
}

/* Not a cryptographic hash: a program that forges equal keys only miscounts memory of its own container. */
uint64_t pool_export_rows_key(const CUmemPoolPtrExportData *data) {
    uint64_t words[sizeof *data / sizeof(uint64_t)];
    uint64_t key = 0;
    memcpy(words, data, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) key = hash_mix(key, words[i]);
    return key;
}

uint64_t pool_export_rows_group(uint64_t pool, const struct extent *extent) {
    struct identity self = container_self();
    uint64_t process = hash_mix(hash_mix(hash_mix(1, self.pid), self.start_time), self.namespace);
    return hash_mix(hash_mix(hash_mix(process, pool), extent->first_step), extent->step_count);
}

/* The caller holds LOCK_REGION. */
static bool add_locked(struct region *region, struct region_pool_export *row, uint64_t reserved_ahead) {
    int slot = container_claim_slot(region);
    row->slot = (uint32_t)slot;
    return slot >= 0 && account_add_pool_export(region, row, reserved_ahead);
}

bool pool_export_rows_add(struct region_pool_export *row, uint64_t reserved_ahead) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    return region && add_locked(region, row, reserved_ahead);
}

/* The caller holds LOCK_REGION. */
static enum join_result join_locked(struct region *region, struct region_pool_export *row) {
    struct region_pool_export found;
    if (!pool_exports_find(region, row->key, &found)) return JOIN_UNKNOWN;
    row->group = found.group;
    row->bytes = found.bytes;
    row->card = found.card;
    return add_locked(region, row, 0) ? JOIN_ADDED : JOIN_UNKNOWN;
}

enum join_result pool_export_rows_join(struct region_pool_export *row) {
    HELD_REGION struct region *region = region_hold(container_region(), REGION_LOCK_MS);
    return region ? join_locked(region, row) : JOIN_LOCKED;
}
