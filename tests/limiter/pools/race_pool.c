/* Threads of one process allocate from the device's pool until they are refused: race_pool THREADS MIB ROUNDS. Prints
 * the highest sum, in MiB, that the threads held together in any round. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, KEPT = 1024 };

static pthread_barrier_t together;
static CUcontext context;
static size_t size;
static unsigned rounds;
static size_t held; /* atomic: bytes of all threads */
static size_t highest;

static void fill(CUdeviceptr *pointers, unsigned *count, CUstream stream) {
    while (*count < KEPT && cuMemAllocAsync(&pointers[*count], size, stream) == CUDA_SUCCESS) (*count)++;
    __atomic_fetch_add(&held, *count * size, __ATOMIC_SEQ_CST);
}

static void *run(void *unused) {
    static __thread CUdeviceptr pointers[KEPT];
    CUstream stream;
    (void)unused;
    if (cuCtxSetCurrent(context) != CUDA_SUCCESS || cuStreamCreate(&stream, 0) != CUDA_SUCCESS) exit(1);
    for (unsigned round = 0; round < rounds; round++) {
        unsigned count = 0;
        pthread_barrier_wait(&together);
        fill(pointers, &count, stream);
        if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD) {
            highest = held > highest ? held : highest;
            held = 0;
        }
        while (count > 0) cuMemFreeAsync(pointers[--count], stream);
        cuStreamSynchronize(stream);
    }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[MOST];
    unsigned wanted = count > 3 ? (unsigned)atoi(arguments[1]) : 1;
    size = count > 3 ? (size_t)atoi(arguments[2]) << 20 : 1;
    rounds = count > 3 ? (unsigned)atoi(arguments[3]) : 1;
    if (wanted > MOST || cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
    pthread_barrier_init(&together, NULL, wanted);
    for (unsigned i = 0; i < wanted; i++) pthread_create(&threads[i], NULL, run, NULL);
    for (unsigned i = 0; i < wanted; i++) pthread_join(threads[i], NULL);
    printf("%zu\n", highest >> 20);
    return 0;
}
