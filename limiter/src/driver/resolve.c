/* We export dlsym and dlvsym. A name that is not ours is jumped, not called, to the C library's own, so that it sees
 * the program's return address: RTLD_NEXT and RTLD_DEFAULT go by that. A name that is ours is looked up and the
 * *address* is exchanged, so that a function of the same name in another library stays that function. */
#include "driver/resolve.h"

#include <dlfcn.h>

#include "driver/elf.h"
#include "driver/function_table.h"

#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_GLIBC "GLIBC_2.17"
#endif

typedef void *(*dlsym_function)(void *, const char *);
typedef void *(*dlvsym_function)(void *, const char *, const char *);

/* The C library's function, found once. In programs of musl no CUDA runs, but dlsym must; dlvsym it has none, and
 * nobody calls it. */
static void *real(void **found, const char *name) {
    void *address = __atomic_load_n(found, __ATOMIC_RELAXED);
    if (!address) address = elf_find_symbol(name);
    __atomic_store_n(found, address, __ATOMIC_RELAXED);
    return address;
}

static dlsym_function real_dlsym(void) {
    static void *found;
    return (dlsym_function)real(&found, "dlsym");
}

static dlvsym_function real_dlvsym(void) {
    static void *found;
    return (dlvsym_function)real(&found, "dlvsym");
}

void *resolve_real_dlsym(void *handle, const char *name) { return real_dlsym()(handle, name); }

static bool is_pseudo(const void *handle) { return handle == RTLD_DEFAULT || handle == RTLD_NEXT; }

/* NOLINTBEGIN(misc-use-internal-linkage): exported under other names, below */
EXPORT void *vgpu_dlsym(void *handle, const char *name);
EXPORT void *vgpu_dlvsym(void *handle, const char *name, const char *version);

/* A call that cannot become a jump: the C library is to see our return address. */
static void *next_after_us(dlsym_function lookup, const char *name) {
    void *address = lookup(RTLD_NEXT, name);
    __asm__ volatile("" : "+r"(address));
    return address;
}

/* Our own export would answer RTLD_DEFAULT even where no driver is loaded: then what comes after us is asked. */
void *vgpu_dlsym(void *handle, const char *name) {
    dlsym_function lookup = real_dlsym();
    if (!name || !functions_is_hooked(name)) __attribute__
        ((musttail)) return lookup(handle, name);
    if (!is_pseudo(handle)) return functions_substitute(lookup(handle, name));
    void *wrapper = functions_loaded_wrapper(name);
    if (wrapper) return wrapper;
    if (handle == RTLD_DEFAULT) return next_after_us(lookup, name);
    __attribute__((musttail)) return lookup(handle, name);
}

void *vgpu_dlvsym(void *handle, const char *name, const char *version) {
    dlvsym_function lookup = real_dlvsym();
    if (!name || !functions_is_hooked(name) || is_pseudo(handle)) __attribute__
        ((musttail)) return lookup(handle, name, version);
    return functions_substitute(lookup(handle, name, version));
}
/* NOLINTEND(misc-use-internal-linkage) */

/* Both versions under which programs ask for them: the platform's first, and the one since dlsym moved into libc. */
__asm__(".symver vgpu_dlsym,dlsym@" FIRST_GLIBC);
__asm__(".symver vgpu_dlvsym,dlvsym@" FIRST_GLIBC);
__asm__(".symver vgpu_dlsym,dlsym@@GLIBC_2.34,remove");
__asm__(".symver vgpu_dlvsym,dlvsym@@GLIBC_2.34,remove");

/* The driver's own answer for the caller's version and flags decides; only its address is exchanged. */
EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    CUresult result = REAL(cuGetProcAddress)(symbol, pfn, version, flags);
    if (result == CUDA_SUCCESS && pfn) *pfn = functions_substitute(*pfn);
    return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
    CUresult result = REAL(cuGetProcAddress_v2)(symbol, pfn, version, flags, status);
    if (result == CUDA_SUCCESS && pfn) *pfn = functions_substitute(*pfn);
    return result;
}
