/* Properties of devices. */
#include <stdio.h>
#include <string.h>

#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"
#include "hardware/cards.h"
#include "hardware/export.h"
#include "hardware/pci.h"
#include "ledger/mps_servers.h"

#define MULTIPROCESSORS 132

EXPORT CUresult cuDeviceGetCount(int *count) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = device_count();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

/* A card that is lost can be described too: a real driver reads the properties once, at cuInit. */
static bool described(CUdevice dev, struct card *card) {
    return device_at(dev) && card_find(device_at(dev)->uuid, card);
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    struct card card;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!name || size <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (!described(device, &card)) return CUDA_ERROR_INVALID_DEVICE;
    (void)snprintf(name, (size_t)size, "%s", card.model);
    return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid *uuid, CUdevice dev) {
    struct card card;
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    if (!described(dev, &card)) return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, card.uuid_bytes, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return get_uuid(uuid, device);
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    return get_uuid(uuid, device);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    struct card card;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!described(device, &card)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = card.memory - card.reserved;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device) {
    struct card card;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!described(device, &card)) return CUDA_ERROR_INVALID_DEVICE;
    uint64_t total = card.memory - card.reserved;
    *bytes = total < UINT32_MAX ? (unsigned)total : UINT32_MAX;
    return CUDA_SUCCESS;
}

/* A client of an MPS server sees those that it may use. */
static int multiprocessors(uint32_t percentage) {
    uint32_t count = MULTIPROCESSORS * percentage / 100;
    return count > 0 ? (int)count : 1;
}

/* The attributes that programs read most, as of an H100. All others are 0. */
static int attribute_of(CUdevice_attribute attrib, const struct card *card) {
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } fixed[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
        {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
        {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
    };
    if (attrib == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return (int)pci_bus(card);
    if (attrib == CU_DEVICE_ATTRIBUTE_MPS_ENABLED) return mps_client_state() != MPS_NONE;
    if (attrib == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) return multiprocessors(mps_client_limits().percentage);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (fixed[i].attribute == attrib) return fixed[i].value;
    return 0;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    struct card card;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!value || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (!described(device, &card)) return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute_of(attribute, &card);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device)) return CUDA_ERROR_INVALID_DEVICE;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *address, int size, CUdevice device) {
    struct card card;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!address || size <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (!described(device, &card)) return CUDA_ERROR_INVALID_DEVICE;
    (void)snprintf(address, (size_t)size, "0000:%02X:00.0", pci_bus(&card));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *address) {
    struct card card;
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!device || !address) return CUDA_ERROR_INVALID_VALUE;
    if (!pci_is_address(address)) return CUDA_ERROR_INVALID_VALUE;
    for (CUdevice i = 0; i < device_count(); i++) {
        if (described(i, &card) && pci_matches(&card, address)) {
            *device = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can_access, CUdevice device, CUdevice peer) {
    HELD_DRIVER const CUresult entered = driver_enter(__func__);
    if (entered != CUDA_SUCCESS) return entered;
    if (!can_access) return CUDA_ERROR_INVALID_VALUE;
    if (!device_at(device) || !device_at(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can_access = device != peer;
    return CUDA_SUCCESS;
}
