/* gpuprobe: uses a GPU, real or simulated, through the CUDA driver API and NVML, and prints JSON lines.
 *
 *   gpuprobe info                          {"cuda":[{"uuid","total","free"}],"nvml":[{"uuid","total","free","used"}]}
 *   gpuprobe alloc [OPTIONS] MIB...        {"mib":4096,"result":0} for each allocation, which is kept
 *   gpuprobe fill [OPTIONS] STEP_MIB       {"mib":8192,"result":2}: the sum of what was allocated, and the error
 *   gpuprobe export [OPTIONS] MIB          {"handle":"00ff...","result":0}: the IPC handle of an allocation
 *   gpuprobe import [OPTIONS] HANDLE       {"result":0}
 *   gpuprobe spin [OPTIONS] US             launches kernels of US microseconds until SIGTERM
 *   gpuprobe fault [OPTIONS]               {"error":"fault","result":700}: a kernel with an illegal access
 *
 *     --device N       CUDA ordinal, 0 by default
 *     --kind KIND      alloc (default) or another of kinds.h; of a context or a module the MIB are ignored
 *     --hold SECONDS   keep the allocations that long; 0 = until SIGTERM
 *     --dlmopen        load the driver into a linker namespace of its own
 *     --proc           find the driver's functions by cuGetProcAddress, as the CUDA runtime does, and not by dlsym
 *
 * Results are of type CUresult, sizes in bytes unless named MiB. Exit code 0; 1 when CUDA does not start:
 * {"error":"cuInit","result":100}; 2 for a wrong command line. Built with GPUPROBE_LINKED, the program is linked with
 * libcuda.so.1. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/driver.h"
#include "probe/info.h"
#include "probe/ipc.h"
#include "probe/kinds.h"
#include "probe/spin.h"

struct options {
    int device;
    allocate_function allocate;
    double hold; /* seconds; negative = not at all, 0 = until SIGTERM */
    bool by_proc;
    bool in_namespace;
};

static int start_device(const struct options *options) {
    CUcontext context;
    if (start_cuda(options->by_proc, options->in_namespace) != 0) return 1;
    CUresult result = cuda.cuDevicePrimaryCtxRetain_(&context, options->device);
    if (result == CUDA_SUCCESS) result = cuda.cuCtxSetCurrent_(context);
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

static void hold(const struct options *options) {
    if (options->hold < 0) return;
    (void)signal(SIGTERM, on_term);
    if (options->hold > 0) {
        usleep((useconds_t)(options->hold * 1e6));
        return;
    }
    for (;;) pause();
}

static int alloc(const struct options *options, char **sizes) {
    if (start_device(options) != 0) return 1;
    for (; *sizes; sizes++) {
        size_t mib = strtoull(*sizes, NULL, 10);
        print_attempt(mib, options->allocate(options->device, mib * MIB));
    }
    hold(options);
    return 0;
}

static int fill(const struct options *options, size_t step) {
    size_t sum = 0;
    CUresult result;
    if (start_device(options) != 0) return 1;
    while ((result = options->allocate(options->device, step * MIB)) == CUDA_SUCCESS) sum += step;
    print_attempt(sum, result);
    hold(options);
    return 0;
}

static int export(const struct options *options, size_t mib) {
    char handle[HANDLE_TEXT];
    if (start_device(options) != 0) return 1;
    CUresult result = export_memory(mib * MIB, handle);
    printf("{\"handle\":\"%s\",\"result\":%d}\n", handle, (int)result);
    (void)fflush(stdout);
    hold(options);
    return 0;
}

static int import(const struct options *options, const char *handle) {
    if (start_device(options) != 0) return 1;
    printf("{\"result\":%d}\n", (int)import_memory(handle));
    (void)fflush(stdout);
    hold(options);
    return 0;
}

static int usage(void) {
    (void)fprintf(stderr,
                  "usage: gpuprobe info | alloc [OPTIONS] MIB... | fill [OPTIONS] STEP_MIB | export [OPTIONS] MIB |\n"
                  "       import [OPTIONS] HANDLE | spin [OPTIONS] US | fault [OPTIONS]\n"
                  "OPTIONS: --device N --kind KIND --hold SECONDS --dlmopen --proc\n"
                  "KIND: %s\n",
                  KINDS);
    return 2;
}

static bool parse(int argc, char **argv, struct options *options) {
    static const struct option known[] = {
        {"device", required_argument, NULL, 'd'}, {"kind", required_argument, NULL, 'k'},
        {"hold", required_argument, NULL, 'h'},   {"dlmopen", no_argument, NULL, 'n'},
        {"proc", no_argument, NULL, 'p'},         {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
            case 'd':
                options->device = (int)strtol(optarg, NULL, 10);
                break;
            case 'k':
                options->allocate = kind_named(optarg);
                break;
            case 'h':
                options->hold = strtod(optarg, NULL);
                break;
            case 'n':
                options->in_namespace = true;
                break;
            case 'p':
                options->by_proc = true;
                break;
            default:
                return false;
        }
    }
    return optind < argc && options->allocate;
}

static int run(const struct options *options, const char *verb, char **rest) {
    size_t number = !*rest ? 0 : strtoull(*rest, NULL, 10);
    if (strcmp(verb, "info") == 0 && !*rest) return info(options->by_proc);
    if (strcmp(verb, "alloc") == 0 && *rest) return alloc(options, rest);
    if (strcmp(verb, "fill") == 0 && number > 0) return fill(options, number);
    if (strcmp(verb, "export") == 0 && number > 0) return export(options, number);
    if (strcmp(verb, "import") == 0 && *rest) return import(options, *rest);
    if (strcmp(verb, "fault") == 0 && !*rest) return start_device(options) != 0 ? 1 : fault();
    if (strcmp(verb, "spin") == 0 && number > 0) return start_device(options) != 0 ? 1 : spin((unsigned)number);
    return usage();
}

int main(int argc, char **argv) {
    struct options options = {.allocate = kind_named("alloc"), .hold = -1};
    if (!parse(argc, argv, &options)) return usage();
    return run(&options, argv[optind], argv + optind + 1);
}
