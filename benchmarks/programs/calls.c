#include "calls.h"

#include <dlfcn.h>

struct calls calls;
struct failure failure = {CUDA_SUCCESS, ""};

static CUresult missing(void) { return MISSING; }

static void *find(void *library, const char *name) {
    void *function = dlsym(library, name);
    return function ? function : (void *)&missing;
}

#define FIND(name) *(void **)&calls.name##_ = find(library, #name);
static uint64_t (*spent_ns)(void);

uint64_t calls_spent_ns(void) { return spent_ns ? spent_ns() : 0; }

bool calls_open(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return false;
    FUNCTIONS(FIND)
    spent_ns = (__typeof__(spent_ns))dlsym(library, "driver_spent_ns");
    return true;
}

void forget_failure(void) { failure = (struct failure){CUDA_SUCCESS, ""}; }

/* Keeps the first failure: later calls only clean up. */
bool did(const char *function, CUresult result) {
    if (result != CUDA_SUCCESS && failure.result == CUDA_SUCCESS) failure = (struct failure){result, function};
    return result == CUDA_SUCCESS;
}
