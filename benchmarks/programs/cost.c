/* Measures calls of the driver, and program starts:
 *
 *   cost                     answers each line of standard input, the name of a figure, with {"ns":PER_CALL}
 *   cost begin               {"init":NS,"context":NS,"result":CURESULT} of cuInit, a context and an allocation
 *   cost spawn PROGRAM       {"ns":NS} from its start to its end
 *   cost together N          {"ns":NS,"failed":COUNT} of N `cost begin` that are started at the same time
 *
 * Launches and stream-ordered calls are measured in batches; the wait for a batch is not part of its time. */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "processes.h"

enum { SMALL = 4 << 10, LARGE = 20 << 20, MOST_PROCESSES = 1024, LINE_SIZE = 64 };

static const char kernel[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty()\n{\nret;\n}\n";

static CUfunction empty;
static CUmemoryPool pool;

static void launch(void) { DO(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL); }

static void allocate(size_t bytes) {
    CUdeviceptr pointer;
    DO(cuMemAlloc_v2, &pointer, bytes);
    DO(cuMemFree_v2, pointer);
}

static void allocate_small(void) { allocate(SMALL); }

static void allocate_large(void) { allocate(LARGE); }

static void allocate_async(void) {
    CUdeviceptr pointer;
    DO(cuMemAllocAsync, &pointer, LARGE, NULL);
    DO(cuMemFreeAsync, pointer, NULL);
}

static void allocate_from_pool(void) {
    CUdeviceptr pointer;
    DO(cuMemAllocFromPoolAsync, &pointer, LARGE, pool, NULL);
    DO(cuMemFreeAsync, pointer, NULL);
}

static void create(void) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    DO(cuMemCreate, &handle, LARGE, &properties, 0);
    DO(cuMemRelease, handle);
}

static void ask(void) {
    size_t available;
    size_t total;
    DO(cuMemGetInfo_v2, &available, &total);
}

static const struct figure {
    const char *name;
    void (*once)(void);
    unsigned batch;
} figures[] = {
    {"launch", launch, 500},
    {"alloc+free 4 KiB", allocate_small, 100},
    {"alloc+free 20 MiB", allocate_large, 50},
    {"async 20 MiB", allocate_async, 500},
    {"pool 20 MiB", allocate_from_pool, 500},
    {"create+release 20 MiB", create, 50},
    {"cuMemGetInfo", ask, 500},
};

static void measure(const char *name) {
    const struct figure *figure = figures;
    while (strcmp(figure->name, name) != 0)
        if (++figure == figures + sizeof figures / sizeof *figures) exit(2);
    uint64_t begun = now_ns();
    for (unsigned i = 0; i < figure->batch; i++) figure->once();
    uint64_t taken = now_ns() - begun;
    DO(cuCtxSynchronize);
    say("{\"ns\":%.1f,\"result\":%d}", (double)taken / figure->batch, (int)failure.result);
}

static bool make_pool(void) {
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    cuuint64_t all = UINT64_MAX;
    return DO(cuMemPoolCreate, &pool, &properties) &&
           DO(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
}

static bool start(void) {
    CUmodule module;
    return start_cuda() && DO(cuModuleLoadData, &module, kernel) && DO(cuModuleGetFunction, &empty, module, "empty") &&
           make_pool();
}

static int serve(void) {
    char line[LINE_SIZE];
    if (!start()) return 1;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        measure(line);
    }
    return 0;
}

static int begin(void) {
    CUcontext context;
    CUdeviceptr pointer;
    if (!calls_open()) return 2;
    uint64_t begun = now_ns();
    DO(cuInit, 0);
    uint64_t initialised = now_ns();
    (void)(DO(cuDevicePrimaryCtxRetain, &context, 0) && DO(cuCtxSetCurrent, context));
    uint64_t retained = now_ns();
    DO(cuMemAlloc_v2, &pointer, LARGE);
    printf("{\"init\":%llu,\"context\":%llu,\"result\":%d}\n", (unsigned long long)(initialised - begun),
           (unsigned long long)(retained - initialised), (int)failure.result);
    return failure.result != CUDA_SUCCESS;
}

static pid_t run(const char *program, char *const arguments[]) {
    pid_t child;
    return posix_spawn(&child, program, NULL, NULL, arguments, environ) == 0 ? child : -1;
}

static int spawn(char *program) {
    char *arguments[] = {program, NULL};
    int status;
    uint64_t begun = now_ns();
    waitpid(run(program, arguments), &status, 0);
    printf("{\"ns\":%llu}\n", (unsigned long long)(now_ns() - begun));
    return status;
}

/* The children print to standard error. */
static int together(int count) {
    static pid_t children[MOST_PROCESSES];
    char *arguments[] = {"cost", "begin", NULL};
    int output = dup(1);
    int failed = 0;
    dup2(2, 1);
    uint64_t begun = now_ns();
    for (int i = 0; i < count; i++) children[i] = run("/proc/self/exe", arguments);
    for (int i = 0, status; i < count; i++) failed += waitpid(children[i], &status, 0) < 0 || status != 0;
    uint64_t taken = now_ns() - begun;
    dprintf(output, "{\"ns\":%llu,\"failed\":%d}\n", (unsigned long long)taken, failed);
    return 0;
}

int main(int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "spawn") == 0 && argc == 3) return spawn(argv[2]);
    if (strcmp(verb, "together") == 0 && argc == 3 && atoi(argv[2]) <= MOST_PROCESSES) return together(atoi(argv[2]));
    return strcmp(verb, "begin") == 0 ? begin() : serve();
}
