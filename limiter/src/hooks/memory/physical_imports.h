/* Physical memory that this process exports as a file descriptor, or receives as one from another process. The caller
 * holds no lock. */
#ifndef VGPU_HOOKS_MEMORY_PHYSICAL_IMPORTS_H
#define VGPU_HOOKS_MEMORY_PHYSICAL_IMPORTS_H

#include "driver/abi.h"
#include "hooks/memory/memory_export_rows.h"

/* Marks the descriptor as which a handle's memory was exported, and adds a row for it. */
void physical_imports_export(CUmemGenericAllocationHandle memory, int descriptor);

/* Before the driver's call: adds an importer's row for the memory of a received descriptor, and sets `row`. */
enum join_state physical_imports_join(int descriptor, struct region_memory_export *row);

/* After the driver's call has failed, or has succeeded: takes the row away, or measures what is imported. The calling
 * thread has one call open (charge/reserve/charge.h). */
void physical_imports_finish(enum join_state joined, const struct region_memory_export *row, CUresult result);

#endif
