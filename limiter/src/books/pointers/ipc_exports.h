/* Allocations that other processes may have opened by an IPC handle (cuIpcGetMemHandle). The memory is charged to its
 * owner alone (region/memory_exports.h). Once the owner has freed it, NVML counts it for a process that still has it
 * open. Every function takes LOCK_IPC_EXPORTS. Pure apart from that. */
#ifndef VGPU_BOOKS_POINTERS_IPC_EXPORTS_H
#define VGPU_BOOKS_POINTERS_IPC_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Records that the allocation at this address has an IPC handle. Its whole chunk (books/pointers/pointers.h) is shared.
 * Returns a number of the chunk, which is the same at every export until ipc_exports_take; 0 where malloc fails. */
uint64_t ipc_exports_add(uint64_t pointer);

/* Forgets the chunk of an allocation that is freed, and returns its number; 0 where it was not exported. */
uint64_t ipc_exports_take(uint64_t pointer);

#endif
