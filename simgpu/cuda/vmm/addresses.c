#include "cuda/vmm/addresses.h"

#include <stdlib.h>

#include "cuda/device/device_memory.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"
#include "hardware/units.h"

#define ADDRESSES UINT64_C(0x500000000000)

struct address_range {
    struct address_range *next;
    CUdeviceptr address;
    uint64_t size;
    struct physical *physical; /* NULL for a reservation */
    bool is_accessible;
};

static struct address_range *reservations;
static struct address_range *mappings;
static CUdeviceptr next_address = ADDRESSES;

static struct address_range *range_holding(struct address_range *list, CUdeviceptr address, uint64_t size) {
    for (struct address_range *range = list; range; range = range->next)
        if (address >= range->address && size <= range->size && address - range->address <= range->size - size)
            return range;
    return NULL;
}

bool mapping_holds(CUdeviceptr address, uint64_t size) {
    const struct address_range *range = range_holding(mappings, address, size);
    return range && range->is_accessible;
}

struct physical *physical_mapped(CUdeviceptr address, uint64_t size) {
    const struct address_range *range = range_holding(mappings, address, size);
    return range ? range->physical : NULL;
}

static bool add_range(struct address_range **list, CUdeviceptr address, uint64_t size, struct physical *physical) {
    struct address_range *made = malloc(sizeof *made);
    if (!made) return false;
    *made = (struct address_range){.next = *list, .address = address, .size = size, .physical = physical};
    *list = made;
    return true;
}

static void remove_range(struct address_range **list, const struct address_range *range) {
    while (*list != range) list = &(*list)->next;
    struct address_range *gone = *list;
    *list = gone->next;
    free(gone);
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct address_range *range = range_holding(mappings, (uintptr_t)address, 1);
    if (!handle || !range) return CUDA_ERROR_INVALID_VALUE;
    range->physical->references++;
    *handle = (uintptr_t)range->physical;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                    unsigned long long flags) {
    (void)addr; /* only a hint */
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!ptr || size == 0 || size % PAGE != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    uint64_t unit = alignment > PAGE ? alignment : PAGE;
    CUdeviceptr address = round_up(next_address, unit);
    if (!add_range(&reservations, address, size, NULL)) return CUDA_ERROR_OUT_OF_MEMORY;
    next_address = address + size;
    *ptr = address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const struct address_range *range = range_holding(reservations, address, size);
    if (!range || range->address != address || range->size != size) return CUDA_ERROR_INVALID_VALUE;
    remove_range(&reservations, range);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    struct physical *physical = physical_of(handle);
    if (!physical || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (size == 0 || size % PAGE != 0 || size > physical->size) return CUDA_ERROR_INVALID_VALUE;
    if (!range_holding(reservations, address, size) || range_holding(mappings, address, 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (!add_range(&mappings, address, size, physical)) return CUDA_ERROR_OUT_OF_MEMORY;
    physical_add_mapping(physical);
    return CUDA_SUCCESS;
}

/* The range must consist of whole mappings. */
EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr at = address; at < address + size;) {
        const struct address_range *range = range_holding(mappings, at, 1);
        if (!range || range->address != at || range->size > address + size - at) return CUDA_ERROR_INVALID_VALUE;
        struct physical *physical = range->physical;
        at += range->size;
        remove_range(&mappings, range);
        physical_remove_mapping(physical);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *description, size_t count) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!description || count == 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr at = address; at < address + size;) {
        struct address_range *range = range_holding(mappings, at, 1);
        if (!range) return CUDA_ERROR_INVALID_VALUE;
        range->is_accessible = description->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
        at = range->address + range->size;
    }
    return CUDA_SUCCESS;
}
