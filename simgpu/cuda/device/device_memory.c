#include "cuda/device/device_memory.h"

#include <errno.h>

#include "cuda/device/devices.h"
#include "ledger/accounts.h"

CUresult device_charge(CUdevice ordinal, uint64_t bytes) {
    struct card card;
    if (!device_card(ordinal, &card)) return CUDA_ERROR_UNKNOWN;
    int result = ledger_charge(card.uuid, bytes, card.memory - card.reserved);
    if (result == 0) return CUDA_SUCCESS;
    return result == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
}

void device_release(CUdevice ordinal, uint64_t bytes) { ledger_release(device_at(ordinal)->uuid, bytes); }

void device_add_contexts(CUdevice ordinal, int added) { ledger_add_contexts(device_at(ordinal)->uuid, added); }

CUresult device_share(CUdevice ordinal, uint64_t bytes, uint64_t *shared_id) {
    if (*shared_id == 0) *shared_id = shared_memory_create(device_at(ordinal)->uuid, bytes, 0);
    return *shared_id != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void device_give_back(CUdevice ordinal, uint64_t bytes, uint64_t shared_id) {
    if (shared_id != 0)
        shared_memory_drop(shared_id, ATTRIBUTED);
    else
        device_release(ordinal, bytes);
}

CUresult shared_memory_import(int descriptor, enum attribution *attribution, struct shared_memory *out) {
    uint64_t id = shared_memory_of_descriptor(descriptor);
    *attribution = shared_memory_is_own(id) ? ATTRIBUTED_WHEN_CLOSED : ATTRIBUTED;
    if (id == 0 || !shared_memory_hold(id, *attribution, out)) return CUDA_ERROR_INVALID_VALUE;
    if (device_of_uuid(out->uuid) < 0) {
        shared_memory_drop(id, *attribution);
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
}

CUresult shared_memory_export(uint64_t shared_id, int *out) {
    int descriptor = shared_memory_open_descriptor(shared_id);
    if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *out = descriptor;
    return CUDA_SUCCESS;
}
