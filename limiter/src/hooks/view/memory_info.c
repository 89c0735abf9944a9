/* Wrappers that tell how much memory a card has: total is the limit, free is what is left of it, neither more than the
 * card's own. */
#include "charge/reserve/charge.h"
#include "charge/reserve/usage_view.h"
#include "common/arithmetic.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"

static CUresult limit_info(CUresult result, size_t *free, size_t *total) {
    uint8_t uuid[UUID_SIZE];
    if (result != CUDA_SUCCESS || !container_is_limited() || !cards_of_context(uuid)) return result;
    struct usage_view view = usage_view_of_card(uuid);
    if (view.limit == UNLIMITED) return result;
    if (free) *free = min_u64(*free, saturating_sub(view.limit, view.used));
    if (total) *total = min_u64(*total, view.limit);
    return result;
}

static CUresult limit_total(CUresult result, size_t *bytes, CUdevice device) {
    uint8_t uuid[UUID_SIZE];
    if (result != CUDA_SUCCESS || !bytes || !container_is_limited() || !cards_of_device(device, uuid)) return result;
    *bytes = min_u64(*bytes, container_memory_limit(uuid));
    return result;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    return limit_info(REAL(cuMemGetInfo_v2)(free, total), free, total);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    return limit_total(REAL(cuDeviceTotalMem_v2)(bytes, device), bytes, device);
}

/* The functions from before CUDA 3.2 have 32-bit numbers. The limited values are never more than the driver's, so they
 * fit. */
EXPORT CUresult cuMemGetInfo(unsigned *free, unsigned *total) {
    CUresult result = REAL(cuMemGetInfo)(free, total);
    size_t wide_free = free ? *free : 0, wide_total = total ? *total : 0;
    limit_info(result, &wide_free, &wide_total);
    if (free) *free = (unsigned)wide_free;
    if (total) *total = (unsigned)wide_total;
    return result;
}

EXPORT CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device) {
    CUresult result = REAL(cuDeviceTotalMem)(bytes, device);
    size_t wide = bytes ? *bytes : 0;
    limit_total(result, &wide, device);
    if (bytes) *bytes = (unsigned)wide;
    return result;
}

/* The view of an NVML device; a limit of UNLIMITED means that NVML's own figures stand. */
static struct usage_view view_of(nvmlDevice_t device) {
    uint8_t uuid[UUID_SIZE];
    if (container_is_limited() && cards_of_nvml(device, uuid)) return usage_view_of_card(uuid);
    return (struct usage_view){.limit = UNLIMITED};
}

/* Whether NVML has no figures because the card has no memory of its own (GB10): then the limit is all it can say. */
static bool is_unified(nvmlReturn_t result, const void *memory) { return result == NVML_ERROR_NOT_SUPPORTED && memory; }

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo)(device, memory);
    bool has_none = is_unified(result, memory);
    if (result != NVML_SUCCESS && !has_none) return result;
    struct usage_view view = view_of(device);
    if (view.limit == UNLIMITED) return result;
    if (has_none) *memory = (nvmlMemory_t){.total = view.limit, .free = view.limit};
    memory->total = min_u64(memory->total, view.limit);
    memory->used = view.used;
    memory->free = min_u64(memory->free, saturating_sub(memory->total, memory->used));
    return NVML_SUCCESS;
}

/* What the driver reserves for itself is not part of the limit, so it is shown as 0. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    bool has_none = is_unified(result, memory);
    if (result != NVML_SUCCESS && !has_none) return result;
    struct usage_view view = view_of(device);
    if (view.limit == UNLIMITED) return result;
    if (has_none && memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (has_none) memory->total = memory->free = view.limit;
    memory->total = min_u64(memory->total, view.limit);
    memory->reserved = 0;
    memory->used = view.used;
    memory->free = min_u64(memory->free, saturating_sub(memory->total, memory->used));
    return NVML_SUCCESS;
}
