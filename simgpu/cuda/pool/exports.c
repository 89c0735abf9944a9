/* What exported pointers hold of a pool (measured on an H200, driver 580).
 *
 * The blocks of an exported pointer are held by the exporter's handle of the pool, by each open descriptor of the pool,
 * and by the handle of each importer that imported the pointer, until those are gone. A handle of an importer that is
 * destroyed while imported pointers are not freed holds the blocks until the importer's end.
 *
 * Once the allocation is freed and the pool trimmed, the blocks stay on the card but NVML counts them with no process.
 * A later allocation at the same addresses is other memory; when it is exported, it replaces the blocks held before.
 *
 * Here each export has blocks of its own, as far as the pool has blocks that belong to no other export. */
#include "cuda/pool/exports.h"

#include <stdlib.h>

#include "cuda/device/device_memory.h"
#include "cuda/device/devices.h"
#include "cuda/pool/pool_state.h"
#include "hardware/units.h"

struct pool_export {
    struct pool_export *next;
    uint64_t shared_id;
    uint64_t bytes;
    CUdeviceptr address; /* of the allocation */
    uint64_t size;
    bool is_reserved; /* part of what the exporter's pool reserved, and attributed to the exporter */
    bool is_held;     /* by the handle of the pool */
};

/* Bytes of the pool's reserve that are part of exports. */
static uint64_t exported_bytes(const struct CUmemPoolHandle_st *pool) {
    uint64_t sum = 0;
    for (const struct pool_export *export = pool->exports; export; export = export->next)
        sum += export->is_reserved ? export->bytes : 0;
    return sum;
}

static struct pool_export *export_of(CUmemoryPool pool, const struct allocation *allocation) {
    for (struct pool_export *export = pool->exports; export; export = export->next)
        if (export->address == allocation->address && export->size == allocation->size) return export;
    return NULL;
}

static struct pool_export *add(CUmemoryPool pool, struct pool_export wanted) {
    struct pool_export *made = malloc(sizeof *made);
    if (made) {
        *made = wanted;
        made->next = pool->exports;
        pool->exports = made;
    }
    return made;
}

static uint64_t lesser(uint64_t one, uint64_t other) { return one < other ? one : other; }

static uint64_t greater(uint64_t one, uint64_t other) { return one > other ? one : other; }

/* Bytes of the blocks that the export has in common with the range. */
static uint64_t common_bytes(const struct pool_export *export, CUdeviceptr address, uint64_t size) {
    uint64_t begin = greater(export->address / POOL_BLOCK, address / POOL_BLOCK);
    uint64_t end = lesser((export->address + export->size - 1) / POOL_BLOCK, (address + size - 1) / POOL_BLOCK);
    return end < begin ? 0 : (end - begin + 1) * POOL_BLOCK;
}

/* A new export replaces the memory that exports of freed allocations keep in the same blocks. */
static void replace(CUmemoryPool pool, const struct allocation *by) {
    for (struct pool_export *export = pool->exports; export; export = export->next) {
        if (!export->is_reserved) {
            export->bytes -= lesser(export->bytes, common_bytes(export, by->address, by->size));
            shared_memory_shrink(export->shared_id, export->bytes);
        }
    }
}

static CUresult make(CUmemoryPool pool, const struct allocation *allocation, uint64_t *shared_id) {
    struct shared_memory held;
    uint64_t left = pool->reserved - exported_bytes(pool);
    uint64_t wanted = round_up(allocation->size, POOL_BLOCK);
    struct pool_export made = {
        .address = allocation->address, .size = allocation->size, .is_reserved = true, .is_held = true};
    made.bytes = lesser(wanted, left);
    replace(pool, allocation);
    made.shared_id = shared_memory_create(device_at(pool->device)->uuid, made.bytes, pool->shared_id);
    if (made.shared_id == 0 || !shared_memory_hold(made.shared_id, UNATTRIBUTED, &held) || !add(pool, made))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *shared_id = made.shared_id;
    return CUDA_SUCCESS;
}

/* An allocation at the same address as the freed one: the shared memory stands for the new allocation. */
static void renew(CUmemoryPool pool, struct pool_export *export) {
    struct shared_memory held;
    if (!export->is_reserved && shared_memory_hold(export->shared_id, ATTRIBUTED, &held)) {
        device_release(pool->device, export->bytes);
        export->is_reserved = true;
    }
}

CUresult pool_export_add(CUmemoryPool pool, const struct allocation *allocation, uint64_t *shared_id) {
    struct pool_export *known = export_of(pool, allocation);
    if (!known) return make(pool, allocation, shared_id);
    renew(pool, known);
    *shared_id = known->shared_id;
    return CUDA_SUCCESS;
}

CUresult pool_export_import(CUmemoryPool pool, uint64_t shared_id) {
    struct shared_memory held;
    for (const struct pool_export *export = pool->exports; export; export = export->next)
        if (export->shared_id == shared_id) return CUDA_SUCCESS;
    if (!shared_memory_hold(shared_id, UNATTRIBUTED, &held)) return CUDA_ERROR_INVALID_VALUE;
    return add(pool, (struct pool_export){.shared_id = shared_id, .is_held = true}) ? CUDA_SUCCESS
                                                                                    : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool is_freed(CUmemoryPool pool, const struct pool_export *export) {
    const struct allocation *found = allocation_at(export->address);
    return pool->used == 0 || !found || found->kind != KIND_POOL || found->pool != pool;
}

uint64_t pool_exports_unreserve(CUmemoryPool pool, uint64_t most) {
    uint64_t hidden = 0;
    for (struct pool_export *export = pool->exports; export; export = export->next) {
        if (export->is_reserved && export->bytes <= most - hidden && is_freed(pool, export)) {
            export->is_reserved = false;
            hidden += export->bytes;
            shared_memory_drop(export->shared_id, ATTRIBUTED);
        }
    }
    return hidden;
}

void pool_exports_drop(CUmemoryPool pool) {
    for (struct pool_export *export = pool->exports; export; export = export->next) {
        if (export->is_held) shared_memory_drop(export->shared_id, UNATTRIBUTED);
        export->is_held = false;
    }
}

void pool_exports_free(CUmemoryPool pool) {
    while (pool->exports) {
        struct pool_export *first = pool->exports;
        pool->exports = first->next;
        free(first);
    }
}
