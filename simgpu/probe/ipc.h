/* Memory that one probe exports and another imports. */
#ifndef SIMGPU_PROBE_IPC_H
#define SIMGPU_PROBE_IPC_H

#include <cuda.h>
#include <stddef.h>

#define HANDLE_TEXT (2 * sizeof(CUipcMemHandle) + 1)

/* Allocates memory and writes its IPC handle as hexadecimal text. */
CUresult export_memory(size_t bytes, char handle[HANDLE_TEXT]);
/* Opens the memory of a handle. CUDA_ERROR_INVALID_VALUE also when the text is not a handle. */
CUresult import_memory(const char *handle);

#endif
