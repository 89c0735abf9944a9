/* Wrappers that map physical memory to arrays. An array holds references to its memory, as a whole or by tiles, until
 * the memory is unmapped or the array is destroyed. Unmapping is counted at the call, though the driver unmaps in
 * stream order. */
#include "books/physical/bindings.h"
#include "books/physical/physical_memory.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/physical_charge.h"

static uint64_t mix(uint64_t hash, uint64_t word) { return (hash ^ word) * 0x9e3779b97f4a7c15ULL; }

/* A hash that identifies a part of an array. */
static uint64_t part_key(const CUarrayMapInfo *part) {
    uint64_t hash = mix(1, part->subresourceType);
    if (part->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL)
        return mix(mix(hash, part->subresource.miptail.layer), part->subresource.miptail.offset);
    hash = mix(mix(hash, part->subresource.sparseLevel.level), part->subresource.sparseLevel.layer);
    hash = mix(mix(hash, part->subresource.sparseLevel.offsetX), part->subresource.sparseLevel.offsetY);
    return mix(hash, part->subresource.sparseLevel.offsetZ);
}

static void bind_part(const CUarrayMapInfo *part) {
    uint64_t owner = (uint64_t)part->resource.array;
    bool is_mapped = part->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
    uint64_t number = is_mapped ? physical_memory_hold(part->memHandle.memHandle) : 0;
    physical_charge_apply(bindings_put(owner, part_key(part), number, REFERENCE_OTHER));
}

static void bind_parts(const CUarrayMapInfo *parts, unsigned count) {
    if (!container_is_limited()) return;
    int call_slot = charge_begin_call();
    for (unsigned i = 0; i < count; i++) bind_part(&parts[i]);
    charge_end_call(call_slot);
}

EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *parts, unsigned count, CUstream stream) {
    CUresult result = REAL(cuMemMapArrayAsync)(parts, count, stream);
    if (result == CUDA_SUCCESS) bind_parts(parts, count);
    return result;
}

EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *parts, unsigned count, CUstream stream) {
    CUresult result = REAL(cuMemMapArrayAsync_ptsz)(parts, count, stream);
    if (result == CUDA_SUCCESS) bind_parts(parts, count);
    return result;
}
