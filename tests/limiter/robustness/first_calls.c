/* Threads that use each card of the machine for the first time at the same moment. The limiter's sources are linked in,
 * so that ThreadSanitizer sees all of it (test_sanitized.py builds it). Exit code 0, 1 or the sanitizer's. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "driver/function_table.h"

#define THREADS 4

static pthread_barrier_t together;
static int devices;
static int failures; /* atomic */

static void *use_each(void *unused) {
    CUcontext context;
    for (int device = 0; device < devices; device++) {
        pthread_barrier_wait(&together);
        if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    CUresult (*count)(int *);
    *(void **)&count = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuDeviceGetCount");
    if (cuInit(0) != CUDA_SUCCESS || count(&devices) != CUDA_SUCCESS || devices == 0) return 1;
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, use_each, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return failures != 0;
}
