/* Memory that other processes may open by an IPC handle. As long as its owner has it, it is charged to him alone; then
 * NVML counts it to who has it open. Pure but for its own lock. */
#ifndef VGPU_IPC_H
#define VGPU_IPC_H

#include <stdbool.h>
#include <stdint.h>

/* The allocation at this address was given a handle. Its whole chunk (holdings.h) is what is shared. */
void ipc_note(uint64_t pointer);

/* It is freed: whether others may have it. */
bool ipc_end(uint64_t pointer);

/* Around a fork, and in the child, which holds nothing. */
void ipc_lock(void);
void ipc_unlock(void);
void ipc_forget_all(void);

#endif
