/* Measures what each CU_LIMIT takes of the card, and at which call: `ctx_limits [libcudadevrt.a [PART]]`.
 *
 * Runs natively, alone on the card, each case in a process of its own. For each call it prints the result, and the
 * bytes by which cuMemGetInfo's used memory, NVML's used memory of the card and NVML's figure of this process grew.
 * Cards are index 0 of CUDA and of NVML. The library links the kernel that launches kernels from the device. With PART,
 * only the cases that have it in their names run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "card_usage.h"
#include "device_code.h"
#include "processes.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

enum { FILL_MIB = 2, FILL_COUNT = 4096, LAUNCH_CODE_SIZE = 4096 };

enum way {
    BY_MODULE,
    BY_LIBRARY, /* cuLibraryLoadData */
    BY_GRAPH,   /* launched as the node of a graph */
    WHILE_BUSY, /* the limit is set again while the kernel runs */
};

/* One case: the limit is set, a module is loaded, and its kernel is launched. */
struct scenario {
    const char *name;
    const char *code;
    size_t value;
    CUlimit limit;
    bool is_set_again; /* sets half of the value after the kernel has run */
    enum way way;
};

static const struct scenario scenarios[] = {
    {"nothing is set, idle kernel", idle_code, 0, CU_LIMIT_MAX, false, BY_MODULE},
    {"nothing is set, malloc kernel", heap_code, 0, CU_LIMIT_MAX, false, BY_MODULE},
    {"nothing is set, printf kernel", printf_code, 0, CU_LIMIT_MAX, false, BY_MODULE},
    {"nothing is set, launching kernel", launch_code, 0, CU_LIMIT_MAX, false, BY_MODULE},
    {"stack, idle kernel", idle_code, 16384, CU_LIMIT_STACK_SIZE, true, BY_MODULE},
    {"printf FIFO, idle kernel", idle_code, 2 * GIB, CU_LIMIT_PRINTF_FIFO_SIZE, true, BY_MODULE},
    {"printf FIFO, printf kernel", printf_code, 2 * GIB, CU_LIMIT_PRINTF_FIFO_SIZE, true, BY_MODULE},
    {"heap, idle kernel", idle_code, 6 * GIB, CU_LIMIT_MALLOC_HEAP_SIZE, true, BY_MODULE},
    {"heap, malloc kernel", heap_code, 6 * GIB, CU_LIMIT_MALLOC_HEAP_SIZE, true, BY_MODULE},
    {"heap, malloc kernel of a library", heap_code, 6 * GIB, CU_LIMIT_MALLOC_HEAP_SIZE, true, BY_LIBRARY},
    {"heap, filled", heap_filling_code, 6 * GIB, CU_LIMIT_MALLOC_HEAP_SIZE, true, BY_MODULE},
    {"heap, malloc kernel in a graph", heap_code, 6 * GIB, CU_LIMIT_MALLOC_HEAP_SIZE, true, BY_GRAPH},
    {"heap, set while a kernel runs", busy_code, GIB, CU_LIMIT_MALLOC_HEAP_SIZE, false, WHILE_BUSY},
    {"heap of 1 TiB, malloc kernel", heap_code, 1024 * GIB, CU_LIMIT_MALLOC_HEAP_SIZE, false, BY_MODULE},
    {"default heap, filled", heap_filling_code, 0, CU_LIMIT_MAX, false, BY_MODULE},
    {"sync depth, idle kernel", idle_code, 24, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, true, BY_MODULE},
    {"sync depth, launching kernel", launch_code, 24, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, true, BY_MODULE},
    {"pending launches, idle kernel", idle_code, 4 << 20, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, true, BY_MODULE},
    {"pending launches, launching", launch_code, 4 << 20, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, true, BY_MODULE},
    {"L2 fetch granularity", idle_code, 128, CU_LIMIT_MAX_L2_FETCH_GRANULARITY, true, BY_MODULE},
    {"persisting L2", idle_code, 32 * MIB, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, true, BY_MODULE},
    {"shared memory", idle_code, 64 << 10, CU_LIMIT_SHMEM_SIZE, true, BY_MODULE},
    {"CIG enabled", idle_code, 1, CU_LIMIT_CIG_ENABLED, true, BY_MODULE},
    {"CIG fallback", idle_code, 1, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED, true, BY_MODULE},
    {"per-block memory", idle_code, MIB, CU_LIMIT_PER_BLOCK_MEMORY_SIZE, true, BY_MODULE},
    {"per-block memory, malloc kernel", heap_code, MIB, CU_LIMIT_PER_BLOCK_MEMORY_SIZE, true, BY_MODULE},
};

static const char *device_runtime; /* path of libcudadevrt.a, or NULL */

static struct card_usage last;

/* Prints a row for a call, with the growth since the previous row. */
static void row(const char *call, CUresult result) {
    struct card_usage now = card_usage_now(getpid());
    (void)printf("| %-28s | %6d | %11.3f | %11.3f | %11.3f |\n", call, (int)result,
                 card_usage_mib(now.context - last.context), card_usage_mib(now.card - last.card),
                 card_usage_mib(now.process - last.process));
    last = now;
}

static size_t limit_now(CUlimit limit) {
    size_t value = 0;
    CUresult result = limit == CU_LIMIT_MAX ? CUDA_SUCCESS : calls.cuCtxGetLimit_(&value, limit);
    return result == CUDA_SUCCESS ? value : (size_t)result;
}

static void set_limit(const struct scenario *of, const char *call, size_t value) {
    if (of->limit == CU_LIMIT_MAX) return;
    size_t before = limit_now(of->limit);
    CUresult result = calls.cuCtxSetLimit_(of->limit, value);
    row(call, result);
    (void)printf("  limit %zu, asked %zu, then %zu\n", before, value, limit_now(of->limit));
}

static CUresult link_launching(CUmodule *module) {
    CUlinkState link;
    char code[LAUNCH_CODE_SIZE];
    void *image = NULL;
    size_t size = 0;
    if (!device_runtime || strlen(launch_code) >= sizeof code) return CUDA_ERROR_NOT_FOUND;
    strcpy(code, launch_code); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): the size was compared */
    CUresult result = calls.cuLinkCreate_v2_(0, NULL, NULL, &link);
    if (result == CUDA_SUCCESS)
        result = calls.cuLinkAddData_v2_(link, CU_JIT_INPUT_PTX, code, strlen(launch_code) + 1, "code", 0, NULL, NULL);
    row("cuLinkAddData", result);
    if (result == CUDA_SUCCESS)
        result = calls.cuLinkAddFile_v2_(link, CU_JIT_INPUT_LIBRARY, device_runtime, 0, NULL, NULL);
    row("cuLinkAddFile", result);
    if (result == CUDA_SUCCESS) result = calls.cuLinkComplete_(link, &image, &size);
    row("cuLinkComplete", result);
    return result == CUDA_SUCCESS ? calls.cuModuleLoadData_(module, image) : result;
}

static bool load(const struct scenario *of, CUmodule *module, CUlibrary *library, CUfunction *function) {
    CUresult result;
    if (of->way == BY_LIBRARY) {
        result = calls.cuLibraryLoadData_(library, of->code, NULL, NULL, 0, NULL, NULL, 0);
        row("cuLibraryLoadData", result);
        if (result == CUDA_SUCCESS) result = calls.cuLibraryGetKernel_((CUkernel *)function, *library, "user");
        row("cuLibraryGetKernel", result);
        return result == CUDA_SUCCESS;
    }
    result = of->code == launch_code ? link_launching(module) : calls.cuModuleLoadData_(module, of->code);
    row("cuModuleLoadData", result);
    if (result == CUDA_SUCCESS) result = calls.cuModuleGetFunction_(function, *module, "user");
    row("cuModuleGetFunction", result);
    return result == CUDA_SUCCESS;
}

static void launch(CUfunction function, const char *call) {
    uint64_t bytes = FILL_MIB * MIB;
    unsigned count = FILL_COUNT;
    void *arguments[] = {&bytes, &count};
    row(call, calls.cuLaunchKernel_(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    row("  synchronized", calls.cuCtxSynchronize_());
}

static void launch_in_graph(CUfunction function) {
    CUgraph graph = NULL;
    CUgraphNode node = NULL;
    CUgraphExec executable = NULL;
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1};
    kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    row("cuGraphCreate", calls.cuGraphCreate_(&graph, 0));
    row("cuGraphAddKernelNode", calls.cuGraphAddKernelNode_v2_(&node, graph, NULL, 0, &kernel));
    row("cuGraphInstantiateWithFlags", calls.cuGraphInstantiateWithFlags_(&executable, graph, 0));
    row("cuGraphUpload", calls.cuGraphUpload_(executable, NULL));
    row("cuGraphLaunch", calls.cuGraphLaunch_(executable, NULL));
    row("  synchronized", calls.cuCtxSynchronize_());
}

/* Shows by its time whether setting the limit waits for the kernel, which runs for 1 s. */
static void set_while_busy(const struct scenario *of, CUfunction function) {
    uint64_t begun = now_ns();
    CUresult launched = calls.cuLaunchKernel_(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    CUresult result = calls.cuCtxSetLimit_(of->limit, of->value + 2 * MIB);
    uint64_t set = now_ns();
    (void)calls.cuCtxSynchronize_();
    (void)printf("  launch %d, set %d after %.1f ms, kernel ended after %.1f ms\n", (int)launched, (int)result,
                 (double)(set - begun) / 1e6, (double)(now_ns() - begun) / 1e6);
}

static void print_filled(CUmodule module) {
    CUdeviceptr address;
    size_t size;
    unsigned got = 0;
    if (calls.cuModuleGetGlobal_v2_(&address, &size, module, "got") == CUDA_SUCCESS)
        (void)calls.cuMemcpyDtoH_v2_(&got, address, sizeof got);
    (void)printf("  malloc gave %u times %u MiB\n", got, FILL_MIB);
}

static void use(const struct scenario *of) {
    CUmodule module = NULL;
    CUlibrary library = NULL;
    CUfunction function = NULL;
    if (!load(of, &module, &library, &function)) return;
    if (of->way == BY_GRAPH) launch_in_graph(function);
    if (of->way == WHILE_BUSY) set_while_busy(of, function);
    launch(function, "first launch");
    if (of->code == heap_filling_code) print_filled(module);
    launch(function, "second launch");
    if (of->is_set_again) set_limit(of, "cuCtxSetLimit, the same", limit_now(of->limit));
    if (of->is_set_again) set_limit(of, "cuCtxSetLimit, half", of->value / 2);
    if (of->is_set_again) set_limit(of, "cuCtxSetLimit, twice", of->value * 2);
    row("unload", of->way == BY_LIBRARY ? calls.cuLibraryUnload_(library) : calls.cuModuleUnload_(module));
}

static int run(const struct scenario *of) {
    CUcontext context;
    if (!calls_open() || !card_usage_open() || calls.cuInit_(0) != CUDA_SUCCESS) return 1;
    (void)printf(
        "\n%s\n| call | result | cuMemGetInfo MiB | NVML card MiB | NVML process MiB |\n|---|---|---|---|---|\n",
        of->name);
    CUresult result = calls.cuCtxCreate_v2_(&context, 0, 0);
    last = (struct card_usage){0, 0, 0};
    row("cuCtxCreate (absolute)", result);
    if (result != CUDA_SUCCESS) return 1;
    set_limit(of, "cuCtxSetLimit", of->value);
    if (of->limit != CU_LIMIT_MAX) set_limit(of, "cuCtxSetLimit, the same", of->value);
    use(of);
    row("cuCtxDestroy", calls.cuCtxDestroy_v2_(context));
    return 0;
}

static bool succeeded(const struct scenario *of) {
    (void)fflush(stdout);
    int status = 1;
    pid_t child = fork();
    if (child == 0) exit(run(of));
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int count, char **arguments) {
    bool all = true;
    device_runtime = count > 1 ? arguments[1] : NULL;
    const char *part = count > 2 ? arguments[2] : "";
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strstr(scenarios[i].name, part)) all &= succeeded(&scenarios[i]);
    return all ? 0 : 1;
}
