/* Charges what cuCtxSetLimit promises to device code: the heap of malloc, and the records of launches from the device.
 *
 * The driver takes the heap at the first launch of a kernel that calls malloc, as a part of the launch, which cannot be
 * refused without knowing the kernel's code: the limit and 2 MiB (measured on an H200, driver 580, by
 * benchmarks/programs/ctx_limits.c). So the heap is charged when the limit is set. Until the driver has taken it, the
 * charge is marked as managed memory, for NVML does not count it. Afterwards the driver refuses to change the limit:
 * that is how the end of the mark is found (context_limits_update_marks).
 *
 * Records of pending launches are charged by their size for as long as the context lives, because no call shows whether
 * the driver has taken them.
 *
 * The limits that a context starts with are not charged ahead: what they take is measured. Of the other limits, the
 * stack size is charged by charge/measure/local_memory.h; printf buffers lie in the host's memory; the rest takes none.
 */
#ifndef VGPU_CHARGE_MEASURE_CONTEXT_LIMITS_H
#define VGPU_CHARGE_MEASURE_CONTEXT_LIMITS_H

#include "charge/reserve/memory_class.h"
#include "driver/abi.h"

/* Whether a limit of the current context is charged here. */
bool context_limits_are_charged(CUlimit limit);

/* Body of cuCtxSetLimit for such a limit. CUDA_ERROR_OUT_OF_MEMORY where the memory limit does not allow the value. */
CUresult context_limits_set(CUlimit limit, size_t value);

/* Removes the marks of heaps that the driver has taken since. May change a heap's limit for a moment. */
void context_limits_update_marks(const uint8_t uuid[UUID_SIZE]);

/* Takes the charges back after a context was destroyed, or a device's primary context. The charges of a green context
 * stay until then, because its heap may be the primary context's. The caller has opened a call (charge.h). */
void context_limits_end(CUcontext context);
void context_limits_end_primary(CUdevice device);
void context_limits_end_green(CUcontext context);

extern const struct memory_class context_limits_class;

#endif
