/* Cancels threads inside CUDA calls: `cancelled ROUNDS SEED`. In each round four threads launch kernels, allocate and
 * free, until pthread_cancel() ends each of them at some time. Then the main thread makes the same calls, and prints
 * "launch 0, allocation 0" after every round has ended. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef unsigned long long pointer;

enum { THREADS = 4, US_MAX = 30000, MIB = 1 << 20 };

static void *context, *kernel;
static int (*set_current)(void *), (*allocate)(pointer *, size_t), (*deallocate)(pointer);
static int (*get_info)(size_t *, size_t *);
static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                     void **);

static void start(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *module;
    set_current = dlsym(cuda, "cuCtxSetCurrent");
    allocate = dlsym(cuda, "cuMemAlloc_v2");
    deallocate = dlsym(cuda, "cuMemFree_v2");
    get_info = dlsym(cuda, "cuMemGetInfo_v2");
    launch = dlsym(cuda, "cuLaunchKernel");
    ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
    ((int (*)(void **, int))dlsym(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
    set_current(context);
    ((int (*)(void **, const void *))dlsym(cuda, "cuModuleLoadData"))(&module, "");
    ((int (*)(void **, void *, const char *))dlsym(cuda, "cuModuleGetFunction"))(&kernel, module, "spin_300");
}

static int launch_once(void) { return launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL); }

static int allocate_once(size_t bytes) {
    pointer allocated;
    int state, result;
    /* A thread that ended between the two calls would leave its memory allocated. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    result = allocate(&allocated, bytes);
    if (result == 0) result = deallocate(allocated);
    pthread_setcancelstate(state, NULL);
    return result;
}

static void *work(void *unused) {
    size_t available, total;
    pointer refused;
    set_current(context);
    for (;;) {
        launch_once();
        allocate_once(2 * MIB);
        allocate(&refused, 1UL << 50);
        get_info(&available, &total);
        pthread_testcancel();
    }
    return unused;
}

static void run_round(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) {
        nanosleep(&(struct timespec){.tv_nsec = rand() % US_MAX * 1000}, NULL);
        pthread_cancel(threads[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    start();
    srand((unsigned)atoi(arguments[2]));
    for (int round = 0; round < atoi(arguments[1]); round++) run_round();
    int launched = launch_once();
    for (int i = 0; i < 20; i++) launched |= launch_once();
    printf("launch %d, allocation %d\n", launched, allocate_once(2 * MIB));
    return 0;
}
