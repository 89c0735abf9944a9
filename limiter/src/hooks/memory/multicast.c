/* Wrappers of multicast objects. They have no memory of their own, but hold a reference to physical memory bound to
 * them until it is unbound or the object is released. */
#include "books/physical/bindings.h"
#include "books/physical/physical_memory.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/function_table.h"
#include "hooks/memory/physical_charge.h"

static uint64_t range_key(CUdevice device, size_t offset) {
    return (uint64_t)offset ^ (uint64_t)(unsigned)device << 48;
}

static CUdevice device_of_handle(CUmemGenericAllocationHandle memory) {
    CUmemAllocationProp properties = {0};
    REAL(cuMemGetAllocationPropertiesFromHandle)(&properties, memory);
    return properties.location.id;
}

static CUdevice device_at(CUdeviceptr address) {
    CUdevice device = 0;
    REAL(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    return device;
}

/* Records that a range of an object is bound to the memory `number`, whose reference the binding takes over; 0: it is
 * unbound. */
static void bind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset, uint64_t number) {
    int call_slot = charge_begin_call();
    physical_charge_apply(bindings_put(object, range_key(device, offset), number, REFERENCE_OTHER));
    charge_end_call(call_slot);
}

static bool is_recorded(CUresult result) { return result == CUDA_SUCCESS && container_is_limited(); }

EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset,
                                   CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                                   unsigned long long flags) {
    CUresult result = REAL(cuMulticastBindMem)(object, offset, memory, memory_offset, size, flags);
    if (is_recorded(result)) bind(object, device_of_handle(memory), offset, physical_memory_hold(memory));
    return result;
}

EXPORT CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
                                      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                                      unsigned long long flags) {
    CUresult result = REAL(cuMulticastBindMem_v2)(object, device, offset, memory, memory_offset, size, flags);
    if (is_recorded(result)) bind(object, device, offset, physical_memory_hold(memory));
    return result;
}

EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr memory, size_t size,
                                    unsigned long long flags) {
    CUresult result = REAL(cuMulticastBindAddr)(object, offset, memory, size, flags);
    if (is_recorded(result)) bind(object, device_at(memory), offset, physical_memory_hold_at(memory));
    return result;
}

EXPORT CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
                                       CUdeviceptr memory, size_t size, unsigned long long flags) {
    CUresult result = REAL(cuMulticastBindAddr_v2)(object, device, offset, memory, size, flags);
    if (is_recorded(result)) bind(object, device, offset, physical_memory_hold_at(memory));
    return result;
}

EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset, size_t size) {
    CUresult result = REAL(cuMulticastUnbind)(object, device, offset, size);
    if (is_recorded(result)) bind(object, device, offset, 0);
    return result;
}
