#include "loader/libc.h"

#include "loader/elf.h"

#define LIBC_NAME(name) #name,
static const char *const names[] = {LIBC_FUNCTIONS(LIBC_NAME)};

/* Never called. Before glibc 2.34 dlsym is in libdl, which the loader loads with this library because of this
 * reference; that of pthread_create stands for libpthread. */
static int (*const needs_libdl)(void *) __attribute__((used, retain)) = dlclose;

static void *addresses[LIBC_COUNT]; /* atomic; NULL: not looked up yet */

void *libc_function(enum libc_function function) {
    void *address = __atomic_load_n(&addresses[function], __ATOMIC_RELAXED);
    if (address) return address;
    address = elf_find_symbol(names[function]);
    __atomic_store_n(&addresses[function], address, __ATOMIC_RELAXED);
    return address;
}
