/* This library exports dlsym and dlvsym. For names that are not NVIDIA's they jump (musttail) to the C library's
 * function instead of calling it, so that the C library sees the program's return address, by which it resolves
 * RTLD_NEXT and RTLD_DEFAULT. For NVIDIA's names the real lookup is made, and its result is replaced only if it is the
 * *address* of NVIDIA's function: a function with that name in another library stays untouched. A function of a second
 * copy of NVIDIA's library is replaced by that of the first (driver/copies.h). */
#include "driver/resolve.h"

#include <dlfcn.h>
#include <string.h>

#include "driver/copies.h"
#include "driver/function_table.h"
#include "driver/namespaces.h"
#include "loader/elf.h"
#include "loader/libc.h"

#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_GLIBC "GLIBC_2.17"
#endif

typedef void *(*dlsym_function)(void *, const char *);
typedef void *(*dlvsym_function)(void *, const char *, const char *);

/* The first copy's own handle is the usual one, and finds no other copy's functions. */
static void *substitute(const void *handle, const char *name, void *address) {
    void *first = functions_is_handle(handle) ? address : copies_redirect(name, address);
    void *found = functions_is_hooked(name) ? functions_substitute(first) : first;
    return found == address ? namespaces_substitute(name, address) : found;
}

/* Whether NVIDIA's libraries may have a function of this name. */
static bool is_relevant(const char *name) {
    return name && (functions_is_named_as(name, CUDA) || functions_is_named_as(name, NVML));
}

static bool is_pseudo(const void *handle) { return handle == RTLD_DEFAULT || handle == RTLD_NEXT; }

/* NOLINTBEGIN(misc-use-internal-linkage): exported under other names, below */
EXPORT void *vgpu_dlsym(void *handle, const char *name);
EXPORT void *vgpu_dlvsym(void *handle, const char *name, const char *version);

/* The asm statement prevents a tail call: the C library must see this library's return address, to search behind it. */
static void *next_after_us(dlsym_function lookup, const char *name) {
    void *address = lookup(RTLD_NEXT, name);
    __asm__ volatile("" : "+r"(address));
    return address;
}

/* Where no driver is loaded, the C library would find this library's own export. So the search starts behind this
 * library, unless another object defines the name: for RTLD_DEFAULT before this library; for RTLD_NEXT before or behind
 * it, because where that search starts depends on the caller. */
void *vgpu_dlsym(void *handle, const char *name) {
    dlsym_function lookup = LIBC(dlsym);
    if (!is_relevant(name) || (is_pseudo(handle) && !functions_is_hooked(name))) __attribute__
        ((musttail)) return lookup(handle, name);
    if (!is_pseudo(handle)) return substitute(handle, name, lookup(handle, name));
    void *wrapper = functions_loaded_wrapper(name);
    if (wrapper) return wrapper;
    if (!elf_is_defined_before(name)) {
        void *next = next_after_us(lookup, name);
        if (!next || handle == RTLD_DEFAULT) return next;
    }
    __attribute__((musttail)) return lookup(handle, name);
}

void *vgpu_dlvsym(void *handle, const char *name, const char *version) {
    dlvsym_function lookup = LIBC(dlvsym);
    if (!is_relevant(name) || is_pseudo(handle)) __attribute__
        ((musttail)) return lookup(handle, name, version);
    return substitute(handle, name, lookup(handle, name, version));
}
/* NOLINTEND(misc-use-internal-linkage) */

void *resolve_own(const char *name) { return strcmp(name, "dlsym") == 0 ? (void *)&vgpu_dlsym : (void *)&vgpu_dlvsym; }

/* The two symbol versions that programs link with: the first of the platform, and GLIBC_2.34, with which both functions
 * moved from libdl into libc. */
__asm__(".symver vgpu_dlsym,dlsym@" FIRST_GLIBC);
__asm__(".symver vgpu_dlvsym,dlvsym@" FIRST_GLIBC);
__asm__(".symver vgpu_dlsym,dlsym@@GLIBC_2.34,remove");
__asm__(".symver vgpu_dlvsym,dlvsym@@GLIBC_2.34,remove");

/* The driver looks up the function for the caller's version and flags; only the resulting address is replaced. */
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
