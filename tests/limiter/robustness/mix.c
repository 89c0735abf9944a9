/* A program whose threads make random calls concurrently. The limiter's sources are linked in, so that the sanitizers
 * see all of it (test_sanitized.py builds it): `mix THREADS ROUNDS SEED [hostile|arrays|pools|launches]`.
 *
 * hostile: another thread writes random bytes to the region, except for its lock; then figures are not checked, only
 * that every call returns. arrays, pools, launches: only such calls. Exit code 0, 1 with a line about the error, or the one of a
 * sanitizer.
 *
 * resolve.c is not linked, because sanitizers do not work with its dlsym; the program calls the wrappers by name. */
#include "mix.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region/region.h"

#define MOST 16

/* descriptors.c inspects a descriptor by its number, which another thread may have closed and reused meanwhile; the
 * inspection recognises that, so this race is no error. */
const char *__tsan_default_suppressions(void) { return "race:file_id"; }

CUcontext context;
nvmlDevice_t card;
int wrong;

static unsigned rounds;
static bool is_hostile;
static void (*one_step)(struct thread *) = step;
static bool is_over; /* atomic */

static void *run(void *argument) {
    struct thread *thread = argument;
    DRIVER(cuCtxSetCurrent)(context);
    for (unsigned i = 0; i < rounds; i++) one_step(thread);
    free_all(thread);
    return NULL;
}

/* The lock is not overwritten: glibc keeps pointers in it, so random bytes may crash the container's own processes. */
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

/* The driver's function, not the wrapper. */
static unsigned long long held_by_card(void) {
    nvmlMemory_t memory = {0};
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    ((nvmlReturn_t (*)(nvmlDevice_t, nvmlMemory_t *))dlsym(nvml, "nvmlDeviceGetMemoryInfo"))(card, &memory);
    return memory.used;
}

/* A measurement corrects wrong charges; it comes later on a slow machine. The memory of the last graph is kept for the
 * next one. */
static void check_nothing_is_left(size_t before) {
    DRIVER(cuCtxSynchronize)();
    expect("cuDeviceGraphMemTrim", cuDeviceGraphMemTrim(0));
    for (int tries = 0; tries < 100 && charged() != before; tries++) usleep(50000);
    if (charged() == before) return;
    wrong = 1;
    (void)fprintf(stderr, "%zu bytes were charged, then %zu; the card's own figure is %llu\n", before, charged(),
                  held_by_card());
}

static void choose(const char *mode) {
    is_hostile = strcmp(mode, "hostile") == 0;
    if (strcmp(mode, "arrays") == 0) one_step = array_step;
    if (strcmp(mode, "pools") == 0) one_step = pool_step;
    if (strcmp(mode, "launches") == 0) one_step = launch_step;
}

int main(int count, char **arguments) {
    if (count < 4 || atoi(arguments[1]) > MOST) return 2;
    static struct thread all[MOST + 1];
    unsigned threads = (unsigned)atoi(arguments[1]);
    rounds = (unsigned)atoi(arguments[2]);
    if (count > 4) choose(arguments[4]);
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
