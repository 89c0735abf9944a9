/* Memory that this process exported or opened by IPC handles. */
#ifndef VGPU_HOOKS_MEMORY_IPC_H
#define VGPU_HOOKS_MEMORY_IPC_H

#include "books/pointers/pointers.h"
#include "driver/abi.h"

/* Releases the charge of an allocation that was freed; if it was exported, what other processes have opened stays
 * charged. The caller holds no lock, and has a call open (charge/reserve/charge.h). */
void ipc_release(CUdeviceptr pointer, struct pointer_charge charge);

/* Ends the imports of contexts that have ended: those whose addresses `is_freed` says to be unknown to the driver. The
 * caller holds no lock, and has a call open. */
void ipc_end_imports(bool (*is_freed)(CUdeviceptr pointer));

#endif
