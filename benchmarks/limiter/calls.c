#define _GNU_SOURCE
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
bool calls_open(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return false;
    FUNCTIONS(FIND)
    return true;
}

void forget_failure(void) { failure = (struct failure){CUDA_SUCCESS, ""}; }

/* The first failure is the answer: what fails after it is our own clearing up. */
bool did(const char *function, CUresult result) {
    if (result != CUDA_SUCCESS && failure.result == CUDA_SUCCESS) failure = (struct failure){result, function};
    return result == CUDA_SUCCESS;
}
