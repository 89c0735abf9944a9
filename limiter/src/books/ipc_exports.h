/* Memory that other processes may open by an IPC handle. As long as its owner has it, it is charged to him alone; then
 * NVML counts it to who has it open. Pure but for its own lock. */
#ifndef VGPU_BOOKS_IPC_EXPORTS_H
#define VGPU_BOOKS_IPC_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* The allocation at this address was given a handle. Its whole chunk (holdings.h) is what is shared. */
void ipc_exports_add(uint64_t pointer);

/* It is freed: whether others may have it. */
bool ipc_exports_remove(uint64_t pointer);

#endif
