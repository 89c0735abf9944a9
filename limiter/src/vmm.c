/* Virtual memory management: the physical memory is charged, addresses and mappings are not. */
#include "attempt.h"
#include "backings.h"
#include "hooks.h"

/* Memory of the host, and what the driver will refuse, is no matter of ours. */
static bool is_on_card(const CUmemGenericAllocationHandle *handle, const CUmemAllocationProp *properties) {
    return handle && properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static void give_back(struct backing freed) {
    if (freed.bytes) charge_release(freed.card, freed.bytes);
}

static CUresult keep(const struct attempt *attempt, CUresult result, const CUmemGenericAllocationHandle *handle) {
    struct backing backing = {attempt->claim.card, attempt->claim.bytes};
    if (!attempt->is_charged) return result;
    if (result == CUDA_SUCCESS && backings_create(*handle, backing)) return result;
    if (result == CUDA_SUCCESS) {
        REAL(cuMemRelease)(*handle);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    give_back(backing);
    return result;
}

static CUresult finish(struct attempt *attempt, CUresult result, const CUmemGenericAllocationHandle *handle) {
    result = keep(attempt, result, handle);
    attempt_end(attempt);
    return result;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                            unsigned long long flags) {
    if (!is_on_card(handle, properties)) return REAL(cuMemCreate)(handle, size, properties, flags);
    struct attempt attempt = attempt_begin_on("cuMemCreate", properties->location.id, size);
    if (attempt.is_refused) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result;
    do result = REAL(cuMemCreate)(handle, size, properties, flags);
    while (attempt_again(&attempt, result));
    return finish(&attempt, result, handle);
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    CUresult result = REAL(cuMemRetainAllocationHandle)(handle, address);
    if (result == CUDA_SUCCESS && charge_is_limited()) backings_retain(*handle, (uintptr_t)address);
    return result;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
    CUresult result = REAL(cuMemMap)(address, size, offset, handle, flags);
    if (result == CUDA_SUCCESS && charge_is_limited()) backings_map(address, size, handle);
    return result;
}

/* Forgotten before the driver's call, for after it the driver may give the number to other memory; the charge goes
 * after it. A release fails only for a handle that is none. */
EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    if (!charge_is_limited()) return REAL(cuMemRelease)(handle);
    int span = charge_enter();
    struct backing freed = backings_release(handle);
    CUresult result = REAL(cuMemRelease)(handle);
    give_back(freed);
    charge_leave(span);
    return result;
}

static void unmapped(uint64_t address, uint64_t end) {
    struct backing freed;
    while (backings_unmap(&address, end, &freed)) give_back(freed);
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    if (!charge_is_limited()) return REAL(cuMemUnmap)(address, size);
    int span = charge_enter();
    CUresult result = REAL(cuMemUnmap)(address, size);
    if (result == CUDA_SUCCESS) unmapped(address, address + size);
    charge_leave(span);
    return result;
}
