/* A library that wraps puts, as jemalloc or a profiler wraps other functions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int puts(const char *text) {
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "puts");
    int (*versioned)(const char *) = (int (*)(const char *))dlvsym(RTLD_NEXT, "puts", "GLIBC_2.2.5");
    if (!next || next == puts || (versioned && versioned != next)) return -1;
    fputs("next: ", stdout);
    return next(text);
}
