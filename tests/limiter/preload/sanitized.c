/* Uses what sanitizers watch: threads, the heap, strings, dlsym; with an argument, CUDA too, on a card of which an
 * allocation of 64 MiB is left. Prints the results. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };

static void *duplicate(void *text) { return strdup(text); }

static char *duplicate_in_thread(const char *text) {
    pthread_t thread;
    void *copy = NULL;
    if (pthread_create(&thread, NULL, duplicate, (void *)text) == 0) pthread_join(thread, &copy);
    return copy;
}

static void *function(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (!address) printf("%s is missing\n", name);
    return address;
}

static void use_cuda(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void *context;
    unsigned long long first, second;
    int (*allocate)(unsigned long long *, size_t) = function(cuda, "cuMemAlloc_v2");
    int result = ((int (*)(unsigned))function(cuda, "cuInit"))(0);
    result |= ((int (*)(void **, int))function(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
    result |= ((int (*)(void *))function(cuda, "cuCtxSetCurrent"))(context);
    printf("start %d", result);
    printf(", 40 MiB %d", allocate(&first, 40 * MIB));
    printf(", 40 MiB more %d", allocate(&second, 40 * MIB));
    printf(", free %d\n", ((int (*)(unsigned long long))function(cuda, "cuMemFree_v2"))(first));
}

int main(int count, char **arguments) {
    (void)arguments;
    char *copy = duplicate_in_thread("hello");
    printf("%s %d\n", copy, function(RTLD_DEFAULT, "puts") != NULL);
    free(copy);
    if (count > 1) use_cuda();
    return 0;
}
