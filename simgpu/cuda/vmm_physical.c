/* Handles of physical memory. */
#define _GNU_SOURCE
#include "vmm_physical.h"

#include <stdlib.h>

static Physical *physicals;

Physical *physical_of(CUmemGenericAllocationHandle handle) {
    for (Physical *each = physicals; each != NULL; each = each->next) {
        if ((uintptr_t)each == handle) {
            return each;
        }
    }
    return NULL;
}

Physical *physical_make(const CUmemAllocationProp *properties, uint64_t size, uint64_t share) {
    Physical *made = malloc(sizeof *made);
    if (made != NULL) {
        *made = (Physical){
            .next = physicals, .properties = *properties, .size = size, .share = share, .sight = SEEN, .references = 1};
        physicals = made;
    }
    return made;
}

static void give_back(const Physical *physical) {
    if (physical->multicast != NULL) {
        multicast_free(physical->multicast);
    } else if (physical->share != 0) {
        ledger_share_drop(physical->share, physical->sight);
    } else {
        device_release(physical->properties.location.id, physical->size);
    }
}

/* From now on it is on the card, but NVML counts it with nobody. */
static void hide(Physical *physical) {
    SimShare share;
    CUresult result = device_share(physical->properties.location.id, physical->size, &physical->share);
    if (result == CUDA_SUCCESS && ledger_share_hold(physical->share, UNSEEN, &share)) {
        ledger_share_drop(physical->share, physical->sight);
        physical->sight = UNSEEN;
    }
}

static void drop_if_done(Physical *physical) {
    if (physical->references > 0 || physical->mappings > 0) {
        return;
    }
    if (physical->holds > 0) {
        if (physical->sight != UNSEEN) {
            hide(physical);
        }
        return;
    }
    Physical **link = &physicals;
    while (*link != physical) {
        link = &(*link)->next;
    }
    *link = physical->next;
    give_back(physical);
    free(physical);
}

void physical_add_mapping(Physical *physical) { physical->mappings++; }

void physical_release_mapping(Physical *physical) {
    physical->mappings--;
    drop_if_done(physical);
}

void physical_hold(Physical *physical) { physical->holds++; }

void physical_let_go(Physical *physical) {
    physical->holds--;
    drop_if_done(physical);
}

SIM_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                                  CUmemAllocationGranularity_flags option) {
    (void)option;
    ENTER();
    REQUIRE(granularity != NULL && prop != NULL, CUDA_ERROR_INVALID_VALUE);
    *granularity = PAGE;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                                unsigned long long flags) {
    ENTER();
    REQUIRE(handle != NULL && prop != NULL && flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(size > 0 && size % PAGE == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE(device_at(prop->location.id) != NULL, CUDA_ERROR_INVALID_DEVICE);
    CUresult result = device_charge(prop->location.id, size);
    REQUIRE(result == CUDA_SUCCESS, result);
    const Physical *made = physical_make(prop, size, 0);
    if (made == NULL) {
        device_release(prop->location.id, size);
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *handle = (uintptr_t)made;
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    ENTER();
    Physical *physical = physical_of(handle);
    REQUIRE(physical != NULL && physical->references > 0, CUDA_ERROR_INVALID_VALUE);
    physical->references--;
    drop_if_done(physical);
    LEAVE(CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                           CUmemGenericAllocationHandle handle) {
    ENTER();
    const Physical *physical = physical_of(handle);
    REQUIRE(prop != NULL && physical != NULL, CUDA_ERROR_INVALID_VALUE);
    *prop = physical->properties;
    LEAVE(CUDA_SUCCESS);
}
