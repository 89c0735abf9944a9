/* Prints for each call how many bytes of a painted stack it wrote. The limit is 64 MiB where there is one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(Handle *, int);
int cuCtxSetCurrent(Handle);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuModuleLoadData(Handle *, const void *);
int cuMemAllocAsync(unsigned long long *, size_t, Handle);
int cuIpcGetMemHandle(void *, unsigned long long);

enum { SIZE = 512 << 10, PAINT = 0xa5 };

static Handle context;

static void *do_nothing(void *unused) {
    cuCtxSetCurrent(context);
    return unused;
}

static void *refused(void *unused) {
    unsigned long long pointer;
    cuCtxSetCurrent(context);
    cuMemAlloc_v2(&pointer, 100ULL << 30);
    return unused;
}

static void *load(void *unused) {
    Handle module;
    cuCtxSetCurrent(context);
    cuModuleLoadData(&module, "");
    return unused;
}

static void *grow(void *unused) {
    unsigned long long pointer;
    cuCtxSetCurrent(context);
    cuMemAllocAsync(&pointer, 20 << 20, NULL);
    return unused;
}

/* The thread's own start is counted too, which is why `nothing` is printed. */
static size_t used_by(void *(*call)(void *)) {
    pthread_t thread;
    pthread_attr_t attributes;
    unsigned char *stack = aligned_alloc(4096, SIZE);
    size_t untouched = 0;
    memset(stack, PAINT, SIZE);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, SIZE);
    if (pthread_create(&thread, &attributes, call, NULL) != 0) exit(3);
    pthread_join(thread, NULL);
    while (untouched < SIZE && stack[untouched] == PAINT) untouched++;
    return SIZE - untouched;
}

int main(void) {
    unsigned long long exported;
    char handle[64];
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0) return 2;
    cuCtxSetCurrent(context);
    /* So that the limiter has exported memory to sum up in every measurement. */
    if (cuMemAlloc_v2(&exported, 1) != 0 || cuIpcGetMemHandle(handle, exported) != 0) return 2;
    printf("{\"nothing\": %zu, \"refused\": %zu, \"load\": %zu, \"grow\": %zu}\n", used_by(do_nothing),
           used_by(refused), used_by(load), used_by(grow));
    return 0;
}
