/* The prototypes of the functions that we hook or call. */
#ifndef VGPU_ABI_H
#define VGPU_ABI_H

/* NVIDIA's own switch: declares every version and stream variant by its exported name, and no macros over them. */
#define __CUDA_API_VERSION_INTERNAL /* NOLINT(bugprone-reserved-identifier,cert-dcl*) */
#include <cuda.h>

/* NVML's header is in no wheel; this is the part of it that we speak, from NVIDIA's NVML API reference. */
typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

enum { NVML_SUCCESS = 0, NVML_ERROR_FUNCTION_NOT_FOUND = 13, NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96 };

typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);

#endif
