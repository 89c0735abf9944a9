/* Does what other preloaded libraries do: allocators wrap malloc and find the next one by dlsym, profilers wrap dlsym
 * itself. Prints the numbers of calls on standard error at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned long allocations, lookups; /* atomic */

/* dlsym may allocate while it looks for our next malloc. */
static char first_memory[65536];
static size_t first_used;

static void *from_first(size_t size) {
    void *at = first_memory + first_used;
    first_used += (size + 15) / 16 * 16;
    return first_used <= sizeof first_memory ? at : NULL;
}

static int is_first(const void *pointer) {
    return (const char *)pointer >= first_memory && (const char *)pointer < first_memory + sizeof first_memory;
}

static void *next_of(const char *name, void **found) {
    static __thread int is_looking;
    if (*found || is_looking) return *found;
    is_looking = 1;
    *found = dlsym(RTLD_NEXT, name);
    is_looking = 0;
    return *found;
}

void *malloc(size_t size) {
    static void *next;
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    void *(*function)(size_t) = (void *(*)(size_t))next_of("malloc", &next);
    return function ? function(size) : from_first(size);
}

void *calloc(size_t count, size_t size) {
    static void *next;
    void *(*function)(size_t, size_t) = (void *(*)(size_t, size_t))next_of("calloc", &next);
    return function ? function(count, size) : from_first(count * size);
}

void free(void *pointer) {
    static void *next;
    void (*function)(void *) = (void (*)(void *))next_of("free", &next);
    if (function && !is_first(pointer)) function(pointer);
}

#ifdef HOOKS_DLSYM
void *dlsym(void *handle, const char *name) {
    static void *(*next)(void *, const char *);
    __atomic_fetch_add(&lookups, 1, __ATOMIC_RELAXED);
    if (!next) next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    /* A jump, because RTLD_NEXT depends on the return address. */
    __attribute__((musttail)) return next(handle, name);
}
#endif

__attribute__((destructor)) static void tell(void) {
    char line[64];
    int length = snprintf(line, sizeof line, "interposer %d %d\n", allocations > 0, lookups > 0);
    (void)!write(STDERR_FILENO, line, (size_t)length);
}
