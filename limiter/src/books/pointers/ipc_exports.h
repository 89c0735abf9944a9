/* Allocations that other processes may have opened by an IPC handle (cuIpcGetMemHandle). The memory is charged to its
 * owner alone. Once the owner has freed it, NVML counts it for the processes that still have it open. Every function
 * takes LOCK_IPC_EXPORTS. Pure apart from that. */
#ifndef VGPU_BOOKS_POINTERS_IPC_EXPORTS_H
#define VGPU_BOOKS_POINTERS_IPC_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Records that the allocation at this address has an IPC handle. Its whole chunk (books/pointers/pointers.h) is shared.
 */
void ipc_exports_add(uint64_t pointer);

/* Forgets the chunk of an allocation that is freed; true where other processes may still have it open. */
bool ipc_exports_remove(uint64_t pointer);

#endif
