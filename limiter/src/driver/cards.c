#include "driver/cards.h"

#include <string.h>

#include "common/gpu_uuid.h"
#include "common/limits.h"
#include "driver/function_table.h"

/* CUdevice is the ordinal, and means the same card for the process's life. */
enum { REMEMBERED = 64 };
static struct {
    uint8_t uuid[UUID_SIZE];
    bool known;
} remembered[REMEMBERED];

/* Without MIG the first version and the second say the same; drivers before 11.4 have the first only. */
static bool ask(CUdevice device, uint8_t uuid[UUID_SIZE]) {
    CUuuid answer = {{0}};
    CUresult result = functions_has(FN_cuDeviceGetUuid_v2) ? REAL(cuDeviceGetUuid_v2)(&answer, device)
                                                           : REAL(cuDeviceGetUuid)(&answer, device);
    memcpy(uuid, answer.bytes, UUID_SIZE);
    return result == CUDA_SUCCESS;
}

bool cards_of_device(CUdevice device, uint8_t uuid[UUID_SIZE]) {
    if (device < 0 || device >= REMEMBERED) return ask(device, uuid);
    if (!__atomic_load_n(&remembered[device].known, __ATOMIC_ACQUIRE)) {
        if (!ask(device, uuid)) return false;
        memcpy(remembered[device].uuid, uuid, UUID_SIZE); /* two threads write the same */
        __atomic_store_n(&remembered[device].known, true, __ATOMIC_RELEASE);
    }
    memcpy(uuid, remembered[device].uuid, UUID_SIZE);
    return true;
}

bool cards_is_single(void) {
    static int devices; /* atomically; 0: not asked yet */
    int known = __atomic_load_n(&devices, __ATOMIC_RELAXED);
    if (known == 0 && REAL(cuDeviceGetCount)(&known) == CUDA_SUCCESS)
        __atomic_store_n(&devices, known, __ATOMIC_RELAXED);
    return known == 1;
}

bool cards_of_context(uint8_t uuid[UUID_SIZE]) {
    return cards_is_single() ? cards_of_device(0, uuid) : cards_current(uuid);
}

bool cards_current(uint8_t uuid[UUID_SIZE]) {
    CUdevice device;
    return REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS && cards_of_device(device, uuid);
}

bool cards_of_nvml(nvmlDevice_t device, uint8_t uuid[UUID_SIZE]) {
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    return REAL(nvmlDeviceGetUUID)(device, text, sizeof text) == NVML_SUCCESS &&
           gpu_uuid_parse(text, strlen(text), uuid);
}
