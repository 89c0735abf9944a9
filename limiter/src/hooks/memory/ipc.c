/* Wrappers of CUDA IPC handles. Opened memory is charged to its owner. If the owner frees it or ends while others have
 * it open, it is charged to the card until NVML, which counts it for one of them then, has answered for all of them
 * (region/memory_exports.h). */
#include "hooks/memory/ipc.h"

#include <stdlib.h>
#include <string.h>

#include "books/pointers/ipc_exports.h"
#include "books/pointers/ipc_imports.h"
#include "charge/measure/measured_call.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/attempt.h"
#include "charge/reserve/refusals.h"
#include "compute/link/linked_turn.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "hooks/memory/memory_export_rows.h"
#include "region/account.h"

/* What the memory at an address takes of its card; a piece takes its chunk. False where the driver does not tell. */
static bool describe(CUdeviceptr pointer, CUdeviceptr *base, uint8_t uuid[UUID_SIZE],
                     struct region_memory_export *row) {
    const struct region *region = container_region();
    CUdevice device;
    size_t size;
    if (!region || REAL(cuMemGetAddressRange_v2)(base, &size, pointer) != CUDA_SUCCESS ||
        REAL(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) != CUDA_SUCCESS ||
        !cards_of_device(device, uuid))
        return false;
    container_join(uuid);
    row->bytes = round_up(size, GRANULARITY);
    row->card = (uint32_t)account_find_card(region, uuid);
    return true;
}

static void record_export(const CUipcMemHandle *handle, CUdeviceptr pointer) {
    struct region_memory_export row = {.key = memory_export_rows_key(handle, sizeof *handle)};
    uint8_t uuid[UUID_SIZE];
    CUdeviceptr base;
    if (!describe(pointer, &base, uuid, &row)) return;
    uint64_t number = ipc_exports_add(base);
    if (number == 0) return;
    row.group = memory_export_rows_group(number);
    memory_export_rows_add(row);
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    CUresult result = REAL(cuIpcGetMemHandle)(handle, pointer);
    if (result == CUDA_SUCCESS && container_is_limited()) record_export(handle, pointer);
    return result;
}

void ipc_release(CUdeviceptr pointer, struct pointer_charge charge) {
    if (!charge.bytes) return;
    uint64_t number = ipc_exports_take(pointer);
    if (number)
        memory_export_rows_end(memory_export_rows_group(number), charge.card, charge.bytes, 0);
    else
        (charge.is_managed ? release_managed : release_charge)(charge.card, charge.bytes);
}

/* The calling thread has one call open. */
static CUresult charge_unknown(struct region_memory_export *row, CUdeviceptr *pointer) {
    uint8_t uuid[UUID_SIZE];
    CUdeviceptr base;
    bool fits = !describe(*pointer, &base, uuid, row) || memory_export_rows_charge(row, uuid);
    if (fits) {
        ipc_imports_add(*pointer, row->group);
        return CUDA_SUCCESS;
    }
    REAL(cuIpcCloseMemHandle)(*pointer);
    *pointer = 0;
    memory_export_rows_drop(row->group);
    refusals_report("cuIpcOpenMemHandle", uuid, row->bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult finish_open(enum join_state joined, struct region_memory_export *row, CUresult result,
                            CUdeviceptr *pointer) {
    if (result != CUDA_SUCCESS) {
        if (joined != IMPORT_UNKNOWN) memory_export_rows_drop(row->group);
        return result;
    }
    if (joined == IMPORT_UNKNOWN) return charge_unknown(row, pointer);
    ipc_imports_add(*pointer, row->group);
    if (joined == IMPORT_ORPHANED) reconcile_own(container_region()->cards[row->card].uuid, 1);
    return result;
}

/* Kernels of the context may wait for what kernels on the memory's card write there. It stays so until the process
 * ends. Exporters in other containers are not known. */
static void link_cards(enum join_state joined, const struct region_memory_export *row) {
    uint8_t own[UUID_SIZE];
    if (joined == IMPORT_UNKNOWN || row->card >= REGION_CARDS || !cards_current(own)) return;
    const uint8_t *other = container_region()->cards[row->card].uuid;
    if (memcmp(own, other, UUID_SIZE) != 0) linked_turn_join(own, other);
}

typedef CUresult (*open_function)(CUdeviceptr *, CUipcMemHandle, unsigned);

/* The row is added before the driver's call, so that the memory is charged if its owner ends meanwhile. */
static CUresult open_handle(open_function driver_open, CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags) {
    struct region_memory_export row = {0};
    if (!pointer || !container_is_limited()) return driver_open(pointer, handle, flags);
    int call_slot = charge_begin_call();
    uint64_t key = memory_export_rows_key(&handle, sizeof handle);
    enum join_state joined = memory_export_rows_join(key, &row);
    row.key = key;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (joined != IMPORT_LOCKED) result = finish_open(joined, &row, driver_open(pointer, handle, flags), pointer);
    if (result == CUDA_SUCCESS) link_cards(joined, &row);
    charge_end_call(call_slot);
    return result;
}

EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags) {
    return open_handle(REAL(cuIpcOpenMemHandle), pointer, handle, flags);
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags) {
    return open_handle(REAL(cuIpcOpenMemHandle_v2), pointer, handle, flags);
}

/* The record is removed before the driver's call, because another thread may be given the same address after it. */
static CUresult close_handle(CUdeviceptr pointer) {
    int call_slot = charge_begin_call();
    uint64_t group = ipc_imports_take(pointer);
    CUresult result = REAL(cuIpcCloseMemHandle)(pointer);
    if (result == CUDA_SUCCESS)
        memory_export_rows_drop(group);
    else if (group)
        ipc_imports_add(pointer, group);
    charge_end_call(call_slot);
    return result;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    if (!container_is_limited()) return REAL(cuIpcCloseMemHandle)(pointer);
    CUresult result = close_handle(pointer);
    if (result == CUDA_SUCCESS) measured_call_reconcile();
    return result;
}

static void end_import(CUdeviceptr pointer) {
    for (uint64_t group = ipc_imports_take(pointer); group; group = ipc_imports_take(pointer))
        memory_export_rows_drop(group);
}

void ipc_end_imports(bool (*is_freed)(CUdeviceptr pointer)) {
    size_t count;
    uint64_t *addresses = ipc_imports_list(&count);
    for (size_t i = 0; i < count; i++)
        if (is_freed(addresses[i])) end_import(addresses[i]);
    free(addresses);
}
