/* Wrappers of external memory. What importing another API's memory takes is measured. Memory that a process of the
 * container made with cuMemCreate and exported as a descriptor is charged already; importing it adds references: the
 * imported object, and each buffer and array mapped from it. */
#include "hooks/memory/external_memory.h"

#include "books/physical/bindings.h"
#include "books/physical/physical_memory.h"
#include "charge/measure/measured_call.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/physical_charge.h"
#include "hooks/memory/physical_imports.h"
#include "hooks/memory/virtual_memory.h"

static bool is_used; /* an import of this process's own memory was recorded; relaxed atomic, never reset */

static bool is_limited_descriptor(const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle) {
    return handle && handle->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD && container_is_limited();
}

/* Memory that another process of the container has exported is charged as an import of it. */
static uint64_t hold_foreign(int descriptor) {
    struct region_memory_export row;
    enum join_state joined = physical_imports_join(descriptor, &row);
    if (joined == IMPORT_UNKNOWN || joined == IMPORT_LOCKED) return 0;
    struct physical_memory foreign = {.card = (int)row.card, .bytes = row.bytes, .group = row.group};
    return physical_memory_hold_foreign(foreign);
}

static uint64_t hold_described_memory(const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle) {
    if (!is_limited_descriptor(handle)) return 0;
    uint64_t number = physical_memory_hold_imported(handle->handle.fd);
    return number ? number : hold_foreign(handle->handle.fd);
}

/* Lets `owner` take over a reference to the physical memory of that number (books/physical/physical_memory.h); 0: none.
 */
static void bind_reference(uint64_t owner, uint64_t number, enum reference_kind sort) {
    if (number == 0) return;
    __atomic_store_n(&is_used, true, __ATOMIC_RELAXED);
    int call_slot = charge_begin_call();
    physical_charge_apply(bindings_put(owner, 0, number, sort));
    charge_end_call(call_slot);
}

static void drop_reference(uint64_t number) {
    if (number == 0) return;
    int call_slot = charge_begin_call();
    physical_charge_apply(physical_memory_drop(number, REFERENCE_IMPORTED));
    charge_end_call(call_slot);
}

void external_memory_end(CUdeviceptr pointer) {
    if (!__atomic_load_n(&is_used, __ATOMIC_RELAXED)) return;
    int call_slot = charge_begin_call();
    virtual_memory_end_owner(pointer);
    charge_end_call(call_slot);
}

/* A successful import closes the descriptor, so the memory behind it is looked up before the driver's call. */
EXPORT CUresult cuImportExternalMemory(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle) {
    uint64_t number = hold_described_memory(handle);
    struct measured_call call = measured_call_begin("cuImportExternalMemory", 0);
    CUresult result = call.is_refused ? CUDA_ERROR_OUT_OF_MEMORY : REAL(cuImportExternalMemory)(memory, handle);
    if (!call.is_refused && !measured_call_fits(&call, result)) {
        REAL(cuDestroyExternalMemory)(*memory);
        result = measured_call_refuse(&call);
    }
    if (result != CUDA_SUCCESS) drop_reference(number);
    if (result != CUDA_SUCCESS || number == 0) return result;
    physical_memory_disown(handle->handle.fd);
    bind_reference((uint64_t)*memory, number, REFERENCE_IMPORTED);
    return result;
}

EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
    CUresult result = REAL(cuDestroyExternalMemory)(memory);
    if (result == CUDA_SUCCESS) external_memory_end((uint64_t)memory);
    return result;
}

EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *pointer, CUexternalMemory memory,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer) {
    CUresult result = REAL(cuExternalMemoryGetMappedBuffer)(pointer, memory, buffer);
    if (result == CUDA_SUCCESS) bind_reference(*pointer, bindings_hold((uint64_t)memory, 0), REFERENCE_OTHER);
    return result;
}

EXPORT CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmaps, CUexternalMemory memory,
                                                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *description) {
    CUresult result = REAL(cuExternalMemoryGetMappedMipmappedArray)(mipmaps, memory, description);
    if (result == CUDA_SUCCESS) bind_reference((uint64_t)*mipmaps, bindings_hold((uint64_t)memory, 0), REFERENCE_OTHER);
    return result;
}
