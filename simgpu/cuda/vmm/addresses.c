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
    ENTER();
    const Range *range = range_holding(mappings, (uintptr_t)addr, 1);
    REQUIRE(handle != NULL && range != NULL, CUDA_ERROR_INVALID_VALUE);
    range->physical->references++;
    *handle = (uintptr_t)range->physical;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                      unsigned long long flags) {
    (void)addr; /* only a hint */
    ENTER();
    REQUIRE(ptr != NULL && size > 0 && size % PAGE == 0 && flags == 0, CUDA_ERROR_INVALID_VALUE);
    uint64_t unit = alignment > PAGE ? alignment : PAGE;
    CUdeviceptr address = round_up(next_address, unit);
    REQUIRE(add_range(&reservations, address, size, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    next_address = address + size;
    *ptr = address;
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
    ENTER();
    const Range *range = range_holding(reservations, ptr, size);
    REQUIRE(range != NULL && range->address == ptr && range->size == size, CUDA_ERROR_INVALID_VALUE);
    remove_range(&reservations, range);
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags) {
    ENTER();
    Physical *physical = physical_of(handle);
    REQUIRE(physical != NULL && offset == 0 && flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(size > 0 && size % PAGE == 0 && size <= physical->size, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(range_holding(reservations, ptr, size) != NULL && range_holding(mappings, ptr, 1) == NULL,
            CUDA_ERROR_INVALID_VALUE);
    REQUIRE(add_range(&mappings, ptr, size, physical), CUDA_ERROR_OUT_OF_MEMORY);
    physical_add_mapping(physical);
    LEAVE(CUDA_SUCCESS);
}

/* The range must consist of whole mappings. */
EXPORTED CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
    ENTER();
    REQUIRE(size > 0, CUDA_ERROR_INVALID_VALUE);
    for (CUdeviceptr at = ptr; at < ptr + size;) {
        const Range *range = range_holding(mappings, at, 1);
        REQUIRE(range != NULL && range->address == at && range->size <= ptr + size - at, CUDA_ERROR_INVALID_VALUE);
        Physical *physical = range->physical;
        at += range->size;
        remove_range(&mappings, range);
        physical_remove_mapping(physical);
    }
    LEAVE(CUDA_SUCCESS);
}

EXPORTED CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count) {
    ENTER();
    REQUIRE(desc != NULL && count > 0 && size > 0, CUDA_ERROR_INVALID_VALUE);
    for (CUdeviceptr at = ptr; at < ptr + size;) {
        Range *range = range_holding(mappings, at, 1);
        REQUIRE(range != NULL, CUDA_ERROR_INVALID_VALUE);
        range->accessible = desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
        at = range->address + range->size;
    }
    LEAVE(CUDA_SUCCESS);
}
