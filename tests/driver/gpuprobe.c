/* gpuprobe: asks a GPU, real or simulated, through the CUDA driver API and NVML, and prints JSON lines.
 *
 *   gpuprobe info                          {"cuda":[{"uuid","total","free"}],"nvml":[{"uuid","total","free","used"}]}
 *   gpuprobe alloc [OPTIONS] MIB...        {"mib":4096,"result":0} for each attempt in turn, all kept; result =
 * CUresult gpuprobe fill [OPTIONS] STEP_MIB       {"mib":8192,"result":2} the sum of the steps that succeeded, and the
 * refusal
 *     --device N       CUDA ordinal, 0 by default
 *     --kind KIND      alloc (default), pitch, managed, async, vmm
 *     --hold SECONDS   keep them that long; 0 = until SIGTERM
 *     --proc           find the driver's functions by cuGetProcAddress, as the CUDA runtime does, instead of dlsym
 *
 * Bytes but where MiB is said. Exit code 0 unless it could not start: {"error":"cuInit","result":100} and 1, usage 2.
 * Built with GPUPROBE_LINKED it names libcuda.so.1 as a needed library and calls it directly. */
#define _GNU_SOURCE
#include "nvml.h"

#include <cuda.h>
#include <dlfcn.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* name by cuGetProcAddress, its version, exported symbol, prototype */
#define FUNCTIONS(X)                                                                                  \
    X(cuInit, 2000, cuInit, (unsigned))                                                               \
    X(cuDeviceGetCount, 2000, cuDeviceGetCount, (int *))                                              \
    X(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2, (CUuuid *, CUdevice))                               \
    X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2, (size_t *, CUdevice))                              \
    X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))              \
    X(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, (CUdevice))                     \
    X(cuCtxSetCurrent, 4000, cuCtxSetCurrent, (CUcontext))                                            \
    X(cuMemGetInfo, 3020, cuMemGetInfo_v2, (size_t *, size_t *))                                      \
    X(cuMemAlloc, 3020, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                       \
    X(cuMemAllocPitch, 3020, cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned)) \
    X(cuMemAllocManaged, 6000, cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned))                  \
    X(cuMemAllocAsync, 11020, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                     \
    X(cuMemCreate, 10020, cuMemCreate,                                                                \
      (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long))

#define DECLARE(name, version, symbol, parameters) CUresult(*name##_) parameters;
static struct {
    FUNCTIONS(DECLARE)
} cuda;

typedef struct {
    int device;
    const char *kind;
    double hold; /* seconds; negative = not at all, 0 = until SIGTERM */
    bool proc;
} Options;

static int failed(const char *what, int result) {
    printf("{\"error\":\"%s\",\"result\":%d}\n", what, result);
    return 1;
}

#ifdef GPUPROBE_LINKED
#define ASSIGN(name, version, symbol, parameters) cuda.name##_ = symbol;
static int load_cuda(const Options *options) {
    (void)options;
    FUNCTIONS(ASSIGN)
    return 0;
}
#else
#define BY_SYMBOL(name, version, symbol, parameters)                   \
    if ((*(void **)&cuda.name##_ = dlsym(library, #symbol)) == NULL) { \
        return failed(#symbol, CUDA_ERROR_NOT_FOUND);                  \
    }
#define BY_PROC(name, version, symbol, parameters)                                                         \
    if (get(#name, (void **)&cuda.name##_, version, 0, &status) != CUDA_SUCCESS || cuda.name##_ == NULL) { \
        return failed(#name, CUDA_ERROR_NOT_FOUND);                                                        \
    }

static int load_by_proc(void *library) {
    CUdriverProcAddressQueryResult status;
    CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    if (get == NULL) {
        return failed("cuGetProcAddress_v2", CUDA_ERROR_NOT_FOUND);
    }
    FUNCTIONS(BY_PROC)
    return 0;
}

static int load_by_symbol(void *library) {
    FUNCTIONS(BY_SYMBOL)
    return 0;
}

static int load_cuda(const Options *options) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        return failed("libcuda.so.1", -1);
    }
    return options->proc ? load_by_proc(library) : load_by_symbol(library);
}
#endif

static int start_cuda(const Options *options) {
    if (load_cuda(options) != 0) {
        return 1;
    }
    CUresult result = cuda.cuInit_(0);
    return result == CUDA_SUCCESS ? 0 : failed("cuInit", (int)result);
}

static void print_uuid(const CUuuid *uuid) {
    printf("GPU-");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        printf("%s%02x", dash ? "-" : "", (unsigned char)uuid->bytes[i]);
    }
}

static int info_device(CUdevice device) {
    CUcontext context;
    CUuuid uuid;
    size_t available;
    size_t of_context;
    size_t total;
    CUresult result = cuda.cuDevicePrimaryCtxRetain_(&context, device);
    if (result == CUDA_SUCCESS) {
        result = cuda.cuCtxSetCurrent_(context);
    }
    if (result != CUDA_SUCCESS) {
        return failed("cuDevicePrimaryCtxRetain", (int)result);
    }
    (void)cuda.cuDeviceGetUuid_(&uuid, device);
    (void)cuda.cuDeviceTotalMem_(&total, device);
    (void)cuda.cuMemGetInfo_(&available, &of_context);
    (void)cuda.cuDevicePrimaryCtxRelease_(device);
    printf("%s{\"uuid\":\"", device > 0 ? "," : "");
    print_uuid(&uuid);
    printf("\",\"total\":%zu,\"free\":%zu}", total, available);
    return 0;
}

/* What NVML says, nothing where it is not there. */
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
    if (library == NULL) {
        return;
    }
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&get_count = dlsym(library, "nvmlDeviceGetCount_v2");
    *(void **)&get_handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&get_uuid = dlsym(library, "nvmlDeviceGetUUID");
    *(void **)&get_memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
    if (init() != NVML_SUCCESS || get_count(&count) != NVML_SUCCESS) {
        return;
    }
    for (unsigned i = 0, printed = 0; i < count; i++) {
        bool good = get_handle(i, &device) == NVML_SUCCESS && get_uuid(device, uuid, sizeof uuid) == NVML_SUCCESS;
        if (good && get_memory(device, &memory) == NVML_SUCCESS) {
            printf("%s{\"uuid\":\"%s\",\"total\":%llu,\"free\":%llu,\"used\":%llu}", printed++ > 0 ? "," : "", uuid,
                   memory.total, memory.free, memory.used);
        }
    }
}

static int info(const Options *options) {
    int count = 0;
    if (start_cuda(options) != 0) {
        return 1;
    }
    (void)cuda.cuDeviceGetCount_(&count);
    printf("{\"cuda\":[");
    for (CUdevice device = 0; device < count; device++) {
        if (info_device(device) != 0) {
            return 1;
        }
    }
    printf("],\"nvml\":[");
    info_nvml();
    printf("]}\n");
    return 0;
}

static CUresult allocate_vmm(int device, size_t bytes) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    return cuda.cuMemCreate_(&handle, bytes, &properties, 0);
}

static CUresult allocate(const Options *options, size_t bytes) {
    CUdeviceptr pointer;
    size_t pitch;
    switch (options->kind[0] == 'a' ? options->kind[1] : options->kind[0]) {
        case 'p':
            return cuda.cuMemAllocPitch_(&pointer, &pitch, MIB, bytes / MIB, 4);
        case 'm':
            return cuda.cuMemAllocManaged_(&pointer, bytes, CU_MEM_ATTACH_GLOBAL);
        case 's':
            return cuda.cuMemAllocAsync_(&pointer, bytes, NULL);
        case 'v':
            return allocate_vmm(options->device, bytes);
        default:
            return cuda.cuMemAlloc_(&pointer, bytes);
    }
}

static int start_device(const Options *options) {
    CUcontext context;
    if (start_cuda(options) != 0) {
        return 1;
    }
    CUresult result = cuda.cuDevicePrimaryCtxRetain_(&context, options->device);
    if (result == CUDA_SUCCESS) {
        result = cuda.cuCtxSetCurrent_(context);
    }
    return result == CUDA_SUCCESS ? 0 : failed("cuDevicePrimaryCtxRetain", (int)result);
}

static void print_attempt(size_t mib, CUresult result) {
    printf("{\"mib\":%zu,\"result\":%d}\n", mib, (int)result);
    (void)fflush(stdout);
}

static void on_term(int signal_number) {
    (void)signal_number;
    _exit(0);
}

static void hold(const Options *options) {
    if (options->hold < 0) {
        return;
    }
    (void)signal(SIGTERM, on_term);
    if (options->hold > 0) {
        (void)usleep((useconds_t)(options->hold * 1e6));
        return;
    }
    for (;;) {
        (void)pause();
    }
}

static int alloc(const Options *options, char **sizes) {
    if (start_device(options) != 0) {
        return 1;
    }
    for (; *sizes != NULL; sizes++) {
        size_t mib = strtoull(*sizes, NULL, 10);
        print_attempt(mib, allocate(options, mib * MIB));
    }
    hold(options);
    return 0;
}

static int fill(const Options *options, size_t step) {
    size_t sum = 0;
    CUresult result;
    if (start_device(options) != 0) {
        return 1;
    }
    while ((result = allocate(options, step * MIB)) == CUDA_SUCCESS) {
        sum += step;
    }
    print_attempt(sum, result);
    hold(options);
    return 0;
}

static int usage(void) {
    (void)fprintf(stderr,
                  "usage: gpuprobe info | alloc [OPTIONS] MIB... | fill [OPTIONS] STEP_MIB\n"
                  "OPTIONS: --device N --kind alloc|pitch|managed|async|vmm --hold SECONDS --proc\n");
    return 2;
}

static bool parse(int argc, char **argv, Options *options) {
    static const struct option known[] = {
        {"device", required_argument, NULL, 'd'},
        {"kind", required_argument, NULL, 'k'},
        {"hold", required_argument, NULL, 'h'},
        {"proc", no_argument, NULL, 'p'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
            case 'd':
                options->device = atoi(optarg);
                break;
            case 'k':
                options->kind = optarg;
                break;
            case 'h':
                options->hold = atof(optarg);
                break;
            case 'p':
                options->proc = true;
                break;
            default:
                return false;
        }
    }
    return optind < argc;
}

int main(int argc, char **argv) {
    Options options = {.kind = "alloc", .hold = -1};
    if (!parse(argc, argv, &options)) {
        return usage();
    }
    const char *verb = argv[optind];
    char **rest = argv + optind + 1;
    if (strcmp(verb, "info") == 0 && *rest == NULL) {
        return info(&options);
    }
    if (strcmp(verb, "alloc") == 0 && *rest != NULL) {
        return alloc(&options, rest);
    }
    if (strcmp(verb, "fill") == 0 && *rest != NULL && strtoull(*rest, NULL, 10) > 0) {
        return fill(&options, strtoull(*rest, NULL, 10));
    }
    return usage();
}
