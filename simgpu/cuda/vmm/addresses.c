#include "cuda/vmm/addresses.h"

#include "cuda/device/device_memory.h"
#include "cuda/driver/driver.h"
#include "hardware/export.h"
#include "hardware/units.h"

#include <stdlib.h>

#define ADDRESSES UINT64_C(0x500000000000)

typedef struct Range {
    struct Range *next;
    CUdeviceptr address;
    uint64_t size;
    Physical *physical; /* NULL for a reservation */
    bool accessible;
} Range;

static Range *reservations;
static Range *mappings;
static CUdeviceptr next_address = ADDRESSES;

static Range *range_holding(Range *list, CUdeviceptr address, uint64_t size) {
    for (Range *each = list; each != NULL; each = each->next) {
        if (address >= each->address && size <= each->size && address - each->address <= each->size - size) {
            return each;
        }
    }
    return NULL;
}

bool mapping_holds(CUdeviceptr address, uint64_t size) {
    const Range *range = range_holding(mappings, address, size);
    return range != NULL && range->accessible;
}

Physical *physical_mapped(CUdeviceptr address, uint64_t size) {
    const Range *range = range_holding(mappings, address, size);
    return range != NULL ? range->physical : NULL;
}

static bool add_range(Range **list, CUdeviceptr address, uint64_t size, Physical *physical) {
    Range *made = malloc(sizeof *made);
    if (made == NULL) {
        return false;
    }
    *made = (Range){.next = *list, .address = address, .size = size, .physical = physical};
    *list = made;
    return true;
}

static void remove_range(Range **list, const Range *range) {
    while (*list != range) {
        list = &(*list)->next;
    }
    Range *gone = *list;
    *list = gone->next;
    free(gone);
}

EXPORTED CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const Range *range = range_holding(mappings, (uintptr_t)addr, 1);
    if (handle == NULL || range == NULL) return CUDA_ERROR_INVALID_VALUE;
    range->physical->references++;
    *handle = (uintptr_t)range->physical;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                      unsigned long long flags) {
    (void)addr; /* only a hint */
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (ptr == NULL || size == 0 || size % PAGE != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    uint64_t unit = alignment > PAGE ? alignment : PAGE;
    CUdeviceptr address = round_up(next_address, unit);
    if (!add_range(&reservations, address, size, NULL)) return CUDA_ERROR_OUT_OF_MEMORY;
    next_address = address + size;
    *ptr = address;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    const Range *range = range_holding(reservations, ptr, size);
    if (range == NULL || range->address != ptr || range->size != size) return CUDA_ERROR_INVALID_VALUE;
    remove_range(&reservations, range);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    Physical *physical = physical_of(handle);
    if (physical == NULL || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (size == 0 || size % PAGE != 0 || size > physical->size) return CUDA_ERROR_INVALID_VALUE;
    if (range_holding(reservations, ptr, size) == NULL || range_holding(mappings, ptr, 1) != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!add_range(&mappings, ptr, size, physical)) return CUDA_ERROR_OUT_OF_MEMORY;
    physical_add_mapping(physical);
    return CUDA_SUCCESS;
}

/* The range must consist of whole mappings. */
EXPORTED CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr at = ptr; at < ptr + size;) {
        const Range *range = range_holding(mappings, at, 1);
        if (range == NULL || range->address != at || range->size > ptr + size - at) return CUDA_ERROR_INVALID_VALUE;
        Physical *physical = range->physical;
        at += range->size;
        remove_range(&mappings, range);
        physical_remove_mapping(physical);
    }
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (desc == NULL || count == 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr at = ptr; at < ptr + size;) {
        Range *range = range_holding(mappings, at, 1);
        if (range == NULL) return CUDA_ERROR_INVALID_VALUE;
        range->accessible = desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
        at = range->address + range->size;
    }
    return CUDA_SUCCESS;
}
