/* Device memory that other processes may open. */
#define _GNU_SOURCE
#include "driver.h"

#include <string.h>

CUresult device_share(CUdevice ordinal, uint64_t bytes, uint64_t *share) {
    if (*share == 0) {
        *share = ledger_share(device_at(ordinal)->uuid, bytes, 0);
    }
    return *share != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void device_give(CUdevice ordinal, uint64_t bytes, uint64_t share) {
    if (share != 0) {
        ledger_share_drop(share, SEEN);
    } else {
        device_release(ordinal, bytes);
    }
}

CUdevice device_of_uuid(const char *uuid) {
    for (CUdevice ordinal = 0; ordinal < device_count(); ordinal++) {
        if (strcmp(device_at(ordinal)->uuid, uuid) == 0) {
            return ordinal;
        }
    }
    return -1;
}

CUresult share_from_descriptor(void *descriptor, SimSight *sight, SimShare *out) {
    uint64_t id = ledger_share_of_descriptor((int)(intptr_t)descriptor);
    *sight = ledger_share_is_own(id) ? SEEN_ALONE : SEEN;
    if (id == 0 || !ledger_share_hold(id, *sight, out)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device_of_uuid(out->uuid) < 0) {
        ledger_share_drop(id, *sight);
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
}

CUresult share_to_descriptor(uint64_t share, int *out) {
    int descriptor = ledger_share_descriptor(share);
    if (descriptor < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *out = descriptor;
    return CUDA_SUCCESS;
}
