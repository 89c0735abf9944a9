/* Memory of other processes that this process has opened by IPC handles (cuIpcOpenMemHandle). The driver returns one
 * address for a handle that is opened several times, and closes it after as many calls of cuIpcCloseMemHandle. Every
 * function takes LOCK_IPC_IMPORTS. Pure apart from that. */
#ifndef VGPU_BOOKS_POINTERS_IPC_IMPORTS_H
#define VGPU_BOOKS_POINTERS_IPC_IMPORTS_H

#include <stddef.h>
#include <stdint.h>

/* Records that memory of a group (region/memory_exports.h) was opened at an address; no effect where malloc fails: the
 * process's row then stays until the process ends. */
void ipc_imports_add(uint64_t address, uint64_t group);

/* Removes one opening of an address, and returns the group; 0 where there is none. */
uint64_t ipc_imports_take(uint64_t address);

/* An array of all addresses, to be freed by the caller, and their count; NULL where there are none or malloc fails. */
uint64_t *ipc_imports_list(size_t *count);

#endif
