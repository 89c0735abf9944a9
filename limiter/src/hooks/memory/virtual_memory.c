/* Wrappers of virtual memory management. Physical memory is charged; address ranges and mappings are not. */
#include "hooks/memory/virtual_memory.h"

#include "books/physical/bindings.h"
#include "books/physical/physical_memory.h"
#include "charge/reserve/attempt.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/physical_charge.h"
#include "hooks/memory/physical_imports.h"

/* Host memory is not charged, and invalid arguments are left to the driver. */
static bool is_on_card(const CUmemGenericAllocationHandle *handle, const CUmemAllocationProp *properties) {
    return handle && properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

void virtual_memory_end_owner(uint64_t owner) {
    struct physical_memory change;
    while (bindings_remove_any(owner, &change)) physical_charge_apply(change);
}

static CUresult record_memory(const struct attempt *attempt, CUresult result,
                              const CUmemGenericAllocationHandle *handle) {
    struct physical_memory physical_memory = {.card = attempt->reservation.card, .bytes = attempt->reservation.bytes};
    if (!attempt->is_charged) return result;
    if (result == CUDA_SUCCESS && physical_memory_create(*handle, physical_memory)) return result;
    if (result == CUDA_SUCCESS) {
        REAL(cuMemRelease)(*handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical_charge_apply(physical_memory);
    return result;
}

static CUresult finish(struct attempt *attempt, CUresult result, const CUmemGenericAllocationHandle *handle) {
    if (attempt->is_refused) return result;
    result = record_memory(attempt, result, handle);
    attempt_end(attempt);
    return result;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                            unsigned long long flags) {
    if (!is_on_card(handle, properties)) return REAL(cuMemCreate)(handle, size, properties, flags);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct attempt attempt = attempt_begin_on("cuMemCreate", properties->location.id, size);
    for (int calls = 0; attempt_needs_call(&attempt, calls, result); calls++)
        result = REAL(cuMemCreate)(handle, size, properties, flags);
    return finish(&attempt, result, handle);
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    CUresult result = REAL(cuMemRetainAllocationHandle)(handle, address);
    if (result == CUDA_SUCCESS && container_is_limited()) physical_memory_retain(*handle, (uintptr_t)address);
    return result;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
    CUresult result = REAL(cuMemMap)(address, size, offset, handle, flags);
    if (result == CUDA_SUCCESS && container_is_limited()) physical_memory_map(address, size, handle);
    return result;
}

EXPORT CUresult cuMemExportToShareableHandle(void *handle, CUmemGenericAllocationHandle memory,
                                             CUmemAllocationHandleType type, unsigned long long flags) {
    CUresult result = REAL(cuMemExportToShareableHandle)(handle, memory, type, flags);
    bool is_descriptor = result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (is_descriptor && container_is_limited()) physical_imports_export(memory, *(int *)handle);
    return result;
}

static void adopt(CUmemGenericAllocationHandle memory, const struct region_memory_export *row) {
    struct physical_memory adopted = {.card = (int)row->card, .bytes = row->bytes, .group = row->group};
    if (row->group) physical_memory_create(memory, adopted);
}

/* The row is added before the driver's call, so that the memory is charged if its exporter ends meanwhile. */
static CUresult import_foreign(CUmemGenericAllocationHandle *memory, void *handle, CUmemAllocationHandleType type) {
    struct region_memory_export row = {0};
    int call_slot = charge_begin_call();
    enum join_state joined = physical_imports_join((int)(intptr_t)handle, &row);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (joined != IMPORT_LOCKED) {
        result = REAL(cuMemImportFromShareableHandle)(memory, handle, type);
        physical_imports_finish(joined, &row, result);
    }
    if (result == CUDA_SUCCESS && joined != IMPORT_UNKNOWN) adopt(*memory, &row);
    charge_end_call(call_slot);
    return result;
}

/* Memory of another process stays charged to that process, and after its end to the card, until NVML counts it for this
 * one (region/memory_exports.h). */
EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *memory, void *handle,
                                               CUmemAllocationHandleType type) {
    bool is_descriptor = memory && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && container_is_limited();
    if (!is_descriptor) return REAL(cuMemImportFromShareableHandle)(memory, handle, type);
    int descriptor = (int)(intptr_t)handle;
    if (!physical_memory_is_exported(descriptor)) return import_foreign(memory, handle, type);
    CUresult result = REAL(cuMemImportFromShareableHandle)(memory, handle, type);
    if (result == CUDA_SUCCESS) physical_memory_import(*memory, descriptor);
    return result;
}

/* The reference is dropped before the driver's call, because afterwards the driver may reuse the handle for other
 * memory; the charge is released after it. A release fails only for an invalid handle, so nothing is put back. */
EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    if (!container_is_limited()) return REAL(cuMemRelease)(handle);
    int call_slot = charge_begin_call();
    struct physical_memory change = physical_memory_release(handle);
    CUresult result = REAL(cuMemRelease)(handle);
    physical_charge_apply(change);
    virtual_memory_end_owner(handle);
    charge_end_call(call_slot);
    return result;
}

static void release_mappings(uint64_t address, uint64_t end) {
    struct physical_memory change;
    while (physical_memory_unmap(&address, end, &change)) physical_charge_apply(change);
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    if (!container_is_limited()) return REAL(cuMemUnmap)(address, size);
    int call_slot = charge_begin_call();
    CUresult result = REAL(cuMemUnmap)(address, size);
    if (result == CUDA_SUCCESS) release_mappings(address, address + size);
    charge_end_call(call_slot);
    return result;
}
