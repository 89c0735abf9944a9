#include "probe/info.h"

#include <dlfcn.h>
#include <stdio.h>

#include "nvml/types.h"
#include "probe/driver.h"

static void print_uuid(const CUuuid *uuid) {
    printf("GPU-");
    for (int i = 0; i < 16; i++) {
        bool has_dash = i == 4 || i == 6 || i == 8 || i == 10;
        printf("%s%02x", has_dash ? "-" : "", (unsigned char)uuid->bytes[i]);
    }
}

static int info_device(CUdevice device) {
    CUcontext context;
    CUuuid uuid;
    size_t available;
    size_t of_context;
    size_t total;
    CUresult result = cuda.cuDevicePrimaryCtxRetain_(&context, device);
    if (result == CUDA_SUCCESS) result = cuda.cuCtxSetCurrent_(context);
    if (result != CUDA_SUCCESS) return failed("cuDevicePrimaryCtxRetain", (int)result);
    (void)cuda.cuDeviceGetUuid_(&uuid, device);
    (void)cuda.cuDeviceTotalMem_(&total, device);
    (void)cuda.cuMemGetInfo_(&available, &of_context);
    (void)cuda.cuDevicePrimaryCtxRelease_(device);
    printf("%s{\"uuid\":\"", device > 0 ? "," : "");
    print_uuid(&uuid);
    printf("\",\"total\":%zu,\"free\":%zu}", total, available);
    return 0;
}

/* Prints nothing on a machine without NVML. */
static void info_nvml(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    nvmlReturn_t (*init)(void) = NULL;
    nvmlReturn_t (*get_count)(unsigned *) = NULL;
    nvmlReturn_t (*get_handle)(unsigned, nvmlDevice_t *) = NULL;
    nvmlReturn_t (*get_uuid)(nvmlDevice_t, char *, unsigned) = NULL;
    nvmlReturn_t (*get_memory)(nvmlDevice_t, nvmlMemory_t *) = NULL;
    nvmlDevice_t device;
    nvmlMemory_t memory;
    unsigned count = 0;
    char uuid[96];
    if (!library) return;
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&get_count = dlsym(library, "nvmlDeviceGetCount_v2");
    *(void **)&get_handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&get_uuid = dlsym(library, "nvmlDeviceGetUUID");
    *(void **)&get_memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
    if (init() != NVML_SUCCESS || get_count(&count) != NVML_SUCCESS) return;
    for (unsigned i = 0, printed = 0; i < count; i++) {
        bool is_known = get_handle(i, &device) == NVML_SUCCESS && get_uuid(device, uuid, sizeof uuid) == NVML_SUCCESS;
        if (is_known && get_memory(device, &memory) == NVML_SUCCESS) {
            printf("%s{\"uuid\":\"%s\",\"total\":%llu,\"free\":%llu,\"used\":%llu}", printed++ > 0 ? "," : "", uuid,
                   memory.total, memory.free, memory.used);
        }
    }
}

int info(bool by_proc) {
    int count = 0;
    if (start_cuda(by_proc, false) != 0) return 1;
    (void)cuda.cuDeviceGetCount_(&count);
    printf("{\"cuda\":[");
    for (CUdevice device = 0; device < count; device++)
        if (info_device(device) != 0) return 1;
    printf("],\"nvml\":[");
    info_nvml();
    printf("]}\n");
    return 0;
}
