#include "vmm.h"

#include <stdint.h>
#include <unistd.h>

bool vmm_create(struct holding *held) {
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    return DO(cuMemCreate, &held->handle, held->bytes, &properties, 0);
}

bool vmm_map(struct holding *held) {
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    if (!DO(cuMemAddressReserve, &held->pointer, held->bytes, 0, 0, 0)) return false;
    if (!DO(cuMemMap, held->pointer, held->bytes, 0, held->handle, 0)) {
        DO(cuMemAddressFree, held->pointer, held->bytes);
        return false;
    }
    if (DO(cuMemSetAccess, held->pointer, held->bytes, &access, 1)) return true;
    vmm_unmap(held);
    return false;
}

void vmm_unmap(struct holding *held) {
    DO(cuMemUnmap, held->pointer, held->bytes);
    DO(cuMemAddressFree, held->pointer, held->bytes);
}

static void give_handle(struct holding *held) { DO(cuMemRelease, held->handle); }

static bool take_mapped(struct holding *held) {
    if (!vmm_create(held)) return false;
    if (vmm_map(held)) return true;
    give_handle(held);
    return false;
}

static void give_mapped(struct holding *held) {
    vmm_unmap(held);
    give_handle(held);
}

/* Releases the handle while the mapping holds the memory; give_retained retains it again. */
static bool take_retained(struct holding *held) {
    if (!take_mapped(held)) return false;
    give_handle(held);
    return true;
}

static void give_retained(struct holding *held) {
    DO(cuMemRetainAllocationHandle, &held->handle, (void *)(uintptr_t)held->pointer);
    give_mapped(held);
}

/* Exports the memory as a file descriptor and imports it: only the imported handle is left. */
static bool take_imported(struct holding *held) {
    int file = -1;
    if (!vmm_create(held)) return false;
    CUmemGenericAllocationHandle original = held->handle;
    bool imported = DO(cuMemExportToShareableHandle, &file, original, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) &&
                    DO(cuMemImportFromShareableHandle, &held->handle, (void *)(uintptr_t)file,
                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (file >= 0) close(file);
    DO(cuMemRelease, original);
    return imported;
}

const struct class vmm_classes[] = {
    {"vmm", take_mapped, give_mapped},
    {"vmm handle", vmm_create, give_handle},
    {"vmm retained", take_retained, give_retained},
    {"vmm imported", take_imported, give_handle},
    {0},
};
