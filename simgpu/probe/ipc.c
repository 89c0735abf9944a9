#include "probe/ipc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/driver.h"

CUresult export_memory(size_t bytes, char handle[HANDLE_TEXT]) {
    CUdeviceptr pointer;
    CUipcMemHandle exported = {{0}};
    unsigned char raw[sizeof exported];
    CUresult result = cuda.cuMemAlloc_(&pointer, bytes);
    if (result == CUDA_SUCCESS) result = cuda.cuIpcGetMemHandle_(&exported, pointer);
    handle[0] = '\0';
    memcpy(raw, &exported, sizeof raw);
    for (size_t i = 0; result == CUDA_SUCCESS && i < sizeof raw; i++) (void)sprintf(handle + 2 * i, "%02x", raw[i]);
    return result;
}

CUresult import_memory(const char *handle) {
    CUdeviceptr pointer;
    CUipcMemHandle exported;
    unsigned char raw[sizeof exported];
    if (strlen(handle) != HANDLE_TEXT - 1) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof raw; i++) {
        const char digits[] = {handle[2 * i], handle[2 * i + 1], '\0'};
        char *end;
        raw[i] = (unsigned char)strtoul(digits, &end, 16);
        if (*end != '\0') return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(&exported, raw, sizeof exported);
    return cuda.cuIpcOpenMemHandle_(&pointer, exported, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}
