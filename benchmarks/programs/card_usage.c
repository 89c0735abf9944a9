#include "card_usage.h"

#include <dlfcn.h>
#include <nvml.h>

#include "calls.h"

enum { PROCESSES = 64 };

static struct {
    void *library;
    nvmlDevice_t card;
    __typeof__(&nvmlDeviceGetMemoryInfo) memory;
    __typeof__(&nvmlDeviceGetComputeRunningProcesses_v3) processes;
} nvml;

bool card_usage_open(void) {
    nvml.library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!nvml.library) return false;
    __typeof__(&nvmlInit_v2) init = dlsym(nvml.library, "nvmlInit_v2");
    __typeof__(&nvmlDeviceGetHandleByIndex_v2) find = dlsym(nvml.library, "nvmlDeviceGetHandleByIndex_v2");
    nvml.memory = dlsym(nvml.library, "nvmlDeviceGetMemoryInfo");
    nvml.processes = dlsym(nvml.library, "nvmlDeviceGetComputeRunningProcesses_v3");
    return init && find && nvml.memory && nvml.processes && init() == NVML_SUCCESS &&
           find(0, &nvml.card) == NVML_SUCCESS;
}

/* The figure of the process, or of the only process, where NVML shows pids of another pid namespace. */
static long long process_bytes(pid_t process) {
    nvmlProcessInfo_t found[PROCESSES];
    unsigned count = PROCESSES;
    if (nvml.processes(nvml.card, &count, found) != NVML_SUCCESS) return 0;
    for (unsigned i = 0; i < count; i++)
        if (found[i].pid == (unsigned)process || count == 1) return (long long)found[i].usedGpuMemory;
    return 0;
}

struct card_usage card_usage_now(pid_t process) {
    size_t left = 0;
    size_t total = 0;
    nvmlMemory_t memory = {0};
    (void)calls.cuMemGetInfo_v2_(&left, &total);
    (void)nvml.memory(nvml.card, &memory);
    return (struct card_usage){(long long)(total - left), (long long)memory.used, process_bytes(process)};
}

double card_usage_mib(long long bytes) { return (double)bytes / (double)(1 << 20); }
