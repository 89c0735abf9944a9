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

static void bind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset, uint64_t number) {
    int call_slot = charge_begin_call();
    physical_charge_apply(bindings_put(object, range_key(device, offset), number, REFERENCE_OTHER));
    charge_end_call(call_slot);
}

/* Body of a binding wrapper. `number` is an expression that adds the reference to the memory, 0 to unbind; the variadic
 * arguments are the real function's. */
#define BIND(name, device, number, object, offset, ...)                                             \
    do {                                                                                            \
        CUresult result = REAL(name)(__VA_ARGS__);                                                  \
        if (result == CUDA_SUCCESS && container_is_limited()) bind(object, device, offset, number); \
        return result;                                                                              \
    } while (0)

EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset,
                                   CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                                   unsigned long long flags) {
    BIND(cuMulticastBindMem, device_of_handle(memory), physical_memory_hold(memory), object, offset, object, offset,
         memory, memory_offset, size, flags);
}

EXPORT CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
                                      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                                      unsigned long long flags) {
    BIND(cuMulticastBindMem_v2, device, physical_memory_hold(memory), object, offset, object, device, offset, memory,
         memory_offset, size, flags);
}

EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr memory, size_t size,
                                    unsigned long long flags) {
    BIND(cuMulticastBindAddr, device_at(memory), physical_memory_hold_at(memory), object, offset, object, offset,
         memory, size, flags);
}

EXPORT CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
                                       CUdeviceptr memory, size_t size, unsigned long long flags) {
    BIND(cuMulticastBindAddr_v2, device, physical_memory_hold_at(memory), object, offset, object, device, offset,
         memory, size, flags);
}

EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset, size_t size) {
    BIND(cuMulticastUnbind, device, 0, object, offset, object, device, offset, size);
}
