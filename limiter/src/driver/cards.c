#include "driver/cards.h"

#include <string.h>

#include "common/gpu_uuid.h"
#include "common/limits.h"
#include "driver/function_table.h"

/* Cache of UUIDs by CUdevice, which is an ordinal and stands for one card throughout the process's life. Devices beyond
 * CACHED_DEVICES are asked for each time. */
enum { CACHED_DEVICES = 64, UUID_WORDS = UUID_SIZE / sizeof(uint64_t) };
static struct {
    uint64_t uuid[UUID_WORDS]; /* atomic; racing threads store equal words */
    bool is_known;             /* atomic, stored last with release order: `uuid` is valid */
} cache[CACHED_DEVICES];

/* Drivers before 11.4 have the first version only. Without MIG both versions give the same answer. */
static bool query_uuid(CUdevice device, uint8_t uuid[UUID_SIZE]) {
    CUuuid answer = {{0}};
    CUresult result = functions_has(FN_cuDeviceGetUuid_v2) ? REAL(cuDeviceGetUuid_v2)(&answer, device)
                                                           : REAL(cuDeviceGetUuid)(&answer, device);
    memcpy(uuid, answer.bytes, UUID_SIZE);
    return result == CUDA_SUCCESS;
}

static void remember(CUdevice device, const uint8_t uuid[UUID_SIZE]) {
    uint64_t words[UUID_WORDS];
    memcpy(words, uuid, UUID_SIZE);
    for (int i = 0; i < UUID_WORDS; i++) __atomic_store_n(&cache[device].uuid[i], words[i], __ATOMIC_RELAXED);
    __atomic_store_n(&cache[device].is_known, true, __ATOMIC_RELEASE);
}

static void recall(CUdevice device, uint8_t uuid[UUID_SIZE]) {
    uint64_t words[UUID_WORDS];
    for (int i = 0; i < UUID_WORDS; i++) words[i] = __atomic_load_n(&cache[device].uuid[i], __ATOMIC_RELAXED);
    memcpy(uuid, words, UUID_SIZE);
}

bool cards_of_device(CUdevice device, uint8_t uuid[UUID_SIZE]) {
    if (device < 0 || device >= CACHED_DEVICES) return query_uuid(device, uuid);
    if (__atomic_load_n(&cache[device].is_known, __ATOMIC_ACQUIRE)) {
        recall(device, uuid);
        return true;
    }
    if (!query_uuid(device, uuid)) return false;
    remember(device, uuid);
    return true;
}

bool cards_is_single(void) {
    static int device_count; /* atomic; 0 = not asked yet */
    int count = __atomic_load_n(&device_count, __ATOMIC_RELAXED);
    if (count == 0 && REAL(cuDeviceGetCount)(&count) == CUDA_SUCCESS)
        __atomic_store_n(&device_count, count, __ATOMIC_RELAXED);
    return count == 1;
}

bool cards_of_context(uint8_t uuid[UUID_SIZE]) {
    return cards_is_single() ? cards_of_device(0, uuid) : cards_current(uuid);
}

bool cards_current(uint8_t uuid[UUID_SIZE]) {
    CUdevice device;
    return REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS && cards_of_device(device, uuid);
}

bool cards_is_current(const uint8_t uuid[UUID_SIZE], CUdevice *device) {
    uint8_t current[UUID_SIZE];
    CUdevice found;
    if (REAL(cuCtxGetDevice)(&found) != CUDA_SUCCESS || !cards_of_device(found, current)) return false;
    if (device) *device = found;
    return memcmp(current, uuid, UUID_SIZE) == 0;
}

bool cards_of_nvml(nvmlDevice_t device, uint8_t uuid[UUID_SIZE]) {
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    return REAL(nvmlDeviceGetUUID)(device, text, sizeof text) == NVML_SUCCESS &&
           gpu_uuid_parse(text, strlen(text), uuid);
}
