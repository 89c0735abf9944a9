/* A program whose threads allocate, free and ask in every way at once, with the limiter's own sources linked in, so
 * that the sanitizers see all of it (test_sanitized.py builds it): `mix THREADS ROUNDS SEED [hostile]`.
 *
 * hostile: another thread writes random bytes over the region meanwhile, but for its lock; then no figure is worth
 * anything, and all that is asked is that every call comes back. Exit code 0, 1 with a line about what is wrong, or
 * what the sanitizers say.
 *
 * Not linked is resolve.c: its dlsym is what no sanitizer lives with, and the program calls the wrappers by name. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../limiter/src/hooks.h"
#include "../../limiter/src/region.h"
#include "../../limiter/src/resolve.h"

#define MIB  (1ULL << 20)
#define KEPT 12
#define MOST 16

void *resolve_real_dlsym(void *handle, const char *name) { return dlsym(handle, name); }

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    (void)symbol, (void)pfn, (void)version, (void)flags;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    (void)status;
    return cuGetProcAddress(symbol, pfn, version, flags);
}

/* What the limiter does not stand in for is the driver's own. */
#define DRIVER(name) ((__typeof__(&(name)))dlsym(dlopen("libcuda.so.1", RTLD_NOW), #name))

static const char PTX[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

static CUcontext context;
static nvmlDevice_t card;
static unsigned rounds;
static bool is_hostile;
static bool is_over; /* atomically */
static int wrong;    /* atomically */

struct thread {
    pthread_t id;
    unsigned long long chance;
    CUdeviceptr plain[KEPT], pooled[KEPT];
    CUmemGenericAllocationHandle physical[KEPT];
    CUarray array[KEPT];
    CUmodule module[KEPT];
};

static unsigned next(struct thread *thread, unsigned most) {
    thread->chance = thread->chance * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(thread->chance >> 33) % most;
}

static void expect(const char *what, CUresult result) {
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) return;
    __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
    (void)fprintf(stderr, "%s: %d\n", what, (int)result);
}

static size_t size(struct thread *thread) {
    return next(thread, 3) ? 1 + next(thread, 200000) : MIB * (1 + next(thread, 4));
}

/* Frees what stands in the place, or fills it. */
#define TOGGLE(place, free, ...)                             \
    do {                                                     \
        bool is_taken = (place) != 0;                        \
        CUresult result = is_taken ? (free) : (__VA_ARGS__); \
        expect(#__VA_ARGS__, result);                        \
        if (is_taken || result != CUDA_SUCCESS) (place) = 0; \
    } while (0)

static void use_plain(struct thread *thread, CUdeviceptr *place) {
    size_t pitch;
    switch (next(thread, 3)) {
        case 0:
            TOGGLE(*place, cuMemFree_v2(*place), cuMemAlloc_v2(place, size(thread)));
            return;
        case 1:
            TOGGLE(*place, cuMemFree_v2(*place), cuMemAllocPitch_v2(place, &pitch, 1 + next(thread, 4000), 64, 4));
            return;
        default:
            TOGGLE(*place, cuMemFree_v2(*place), cuMemAllocManaged(place, size(thread), CU_MEM_ATTACH_GLOBAL));
    }
}

static void use_physical(struct thread *thread, CUmemGenericAllocationHandle *place) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    TOGGLE(*place, cuMemRelease(*place), cuMemCreate(place, 2 * MIB * (1 + next(thread, 2)), &properties, 0));
}

static void use_array(struct thread *thread, CUarray *place) {
    CUDA_ARRAY_DESCRIPTOR descriptor = {.Width = 64 + next(thread, 1000),
                                        .Height = 1 + next(thread, 200),
                                        .Format = CU_AD_FORMAT_FLOAT,
                                        .NumChannels = 4};
    TOGGLE(*place, cuArrayDestroy(*place), cuArrayCreate_v2(place, &descriptor));
}

static void ask(struct thread *thread) {
    size_t free, total;
    nvmlMemory_t memory;
    nvmlProcessInfo_t listed[64];
    unsigned count = 64;
    CUcontext other;
    switch (next(thread, 4)) {
        case 0:
            expect("cuMemGetInfo_v2", cuMemGetInfo_v2(&free, &total));
            if (free > total) expect("more free than there is", CUDA_ERROR_UNKNOWN);
            return;
        case 1:
            nvmlDeviceGetMemoryInfo(card, &memory);
            return;
        case 2:
            nvmlDeviceGetComputeRunningProcesses_v3(card, &count, listed);
            return;
        default:
            if (next(thread, 20)) return;
            CUresult result = cuCtxCreate_v2(&other, 0, 0);
            expect("cuCtxCreate_v2", result);
            if (result == CUDA_SUCCESS) expect("cuCtxDestroy_v2", cuCtxDestroy_v2(other));
            DRIVER(cuCtxSetCurrent)(context);
    }
}

static void step(struct thread *thread) {
    unsigned place = next(thread, KEPT);
    switch (next(thread, 7)) {
        case 0:
        case 1:
            use_plain(thread, &thread->plain[place]);
            return;
        case 2:
            TOGGLE(thread->pooled[place], cuMemFreeAsync(thread->pooled[place], NULL),
                   cuMemAllocAsync(&thread->pooled[place], size(thread), NULL));
            return;
        case 3:
            use_physical(thread, &thread->physical[place]);
            return;
        case 4:
            use_array(thread, &thread->array[place]);
            return;
        case 5:
            TOGGLE(thread->module[place], cuModuleUnload(thread->module[place]),
                   cuModuleLoadData(&thread->module[place], PTX));
            return;
        default:
            ask(thread);
    }
}

static void free_all(struct thread *thread) {
    for (unsigned i = 0; i < KEPT; i++) {
        if (thread->plain[i]) expect("cuMemFree_v2", cuMemFree_v2(thread->plain[i]));
        if (thread->pooled[i]) expect("cuMemFreeAsync", cuMemFreeAsync(thread->pooled[i], NULL));
        if (thread->physical[i]) expect("cuMemRelease", cuMemRelease(thread->physical[i]));
        if (thread->array[i]) expect("cuArrayDestroy", cuArrayDestroy(thread->array[i]));
        if (thread->module[i]) expect("cuModuleUnload", cuModuleUnload(thread->module[i]));
    }
}

static void *run(void *argument) {
    struct thread *thread = argument;
    DRIVER(cuCtxSetCurrent)(context);
    for (unsigned i = 0; i < rounds; i++) step(thread);
    free_all(thread);
    return NULL;
}

/* The lock is spared: a hostile lock can hurt its own container's processes, by the pointers that glibc keeps in it. */
static void *scribble(void *argument) {
    struct thread *thread = argument;
    int fd = open(getenv("VGPU_REGION_FILE"), O_RDWR | O_CLOEXEC);
    struct region *region = mmap(NULL, sizeof *region, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        size_t first = next(thread, 2) ? sizeof region->header : offsetof(struct region, slots);
        size_t most = next(thread, 2) ? 4 * sizeof(struct region_slot) : sizeof *region - first;
        ((volatile unsigned char *)region)[first + next(thread, (unsigned)most)] = (unsigned char)next(thread, 256);
        __atomic_store_n(&region->header.slots_high, next(thread, 3) ? next(thread, 5000) : UINT32_MAX,
                         __ATOMIC_RELAXED);
    }
    munmap(region, sizeof *region);
    return NULL;
}

static void begin(void) {
    DRIVER(cuInit)(0);
    expect("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0));
    DRIVER(cuCtxSetCurrent)(context);
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    ((nvmlReturn_t (*)(void))dlsym(nvml, "nvmlInit_v2"))();
    ((nvmlReturn_t (*)(unsigned, nvmlDevice_t *))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"))(0, &card);
}

static size_t charged(void) {
    size_t free = 0, total = 0;
    expect("cuMemGetInfo_v2", cuMemGetInfo_v2(&free, &total));
    return total - free;
}

/* What was charged too much or too little is corrected by a measurement, which comes the later the slower we are. */
static void check_nothing_is_left(size_t before) {
    DRIVER(cuCtxSynchronize)();
    for (int tries = 0; tries < 100 && charged() != before; tries++) usleep(50000);
    if (charged() == before) return;
    wrong = 1;
    (void)fprintf(stderr, "%zu bytes were charged, then %zu\n", before, charged());
}

int main(int count, char **arguments) {
    if (count < 4 || atoi(arguments[1]) > MOST) return 2;
    static struct thread all[MOST + 1];
    unsigned threads = (unsigned)atoi(arguments[1]);
    rounds = (unsigned)atoi(arguments[2]);
    is_hostile = count > 4;
    begin();
    size_t before = charged();
    for (unsigned i = 0; i <= threads; i++) all[i].chance = strtoull(arguments[3], NULL, 10) * 1000 + i;
    for (unsigned i = 0; i < threads; i++) pthread_create(&all[i].id, NULL, run, &all[i]);
    if (is_hostile) pthread_create(&all[threads].id, NULL, scribble, &all[threads]);
    for (unsigned i = 0; i < threads; i++) pthread_join(all[i].id, NULL);
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    if (is_hostile) pthread_join(all[threads].id, NULL);
    if (!is_hostile) check_nothing_is_left(before);
    return wrong;
}
