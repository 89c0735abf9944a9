#include "driver/real_lookup.h"

#include "driver/elf.h"

/* Address of a function of the C library, looked up once. */
static void *cached_symbol(void **found, const char *name) {
    void *address = __atomic_load_n(found, __ATOMIC_RELAXED);
    if (!address) address = elf_find_symbol(name);
    __atomic_store_n(found, address, __ATOMIC_RELAXED);
    return address;
}

dlsym_function real_lookup_dlsym(void) {
    static void *found;
    return (dlsym_function)cached_symbol(&found, "dlsym");
}

dlvsym_function real_lookup_dlvsym(void) {
    static void *found;
    return (dlvsym_function)cached_symbol(&found, "dlvsym");
}
