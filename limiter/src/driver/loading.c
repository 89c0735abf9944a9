/* Loads of the dynamic loader that bypass a preloaded library: dlopen with RTLD_DEEPBIND, whose objects prefer their
 * own dependencies, and dlmopen, whose namespaces have none of the preloaded libraries. This library exports dlopen and
 * dlmopen, and binds what they have loaded (driver/relocations.h). A namespace of dlmopen gets a copy of this library.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "common/log.h"
#include "driver/copies.h"
#include "driver/function_table.h"
#include "driver/namespaces.h"
#include "driver/relocations.h"
#include "driver/resolve.h"
#include "loader/elf.h"
#include "loader/libc.h"

typedef void *(*dlopen_function)(const char *, int);
typedef void *(*dlmopen_function)(Lmid_t, const char *, int);

/* NOLINTBEGIN(misc-use-internal-linkage): exported, two of them under other names, below */
EXPORT void *vgpu_dlopen(const char *path, int flags);
EXPORT void *vgpu_dlmopen(Lmid_t space, const char *path, int flags);
EXPORT void vgpu_bind_namespace(void);
EXPORT void *vgpu_substitute(const char *name, void *address);

void *vgpu_substitute(const char *name, void *address) { return functions_substitute(copies_redirect(name, address)); }

/* References to the C library's functions that another library replaces stay as they are. */
static void *replace(const char *name, void *present) {
    const struct {
        const char *name;
        void *ours;
    } loading[] = {{"dlsym", resolve_own("dlsym")},
                   {"dlvsym", resolve_own("dlvsym")},
                   {"dlopen", (void *)&vgpu_dlopen},
                   {"dlmopen", (void *)&vgpu_dlmopen}};
    for (size_t i = 0; i < sizeof loading / sizeof *loading; i++)
        if (strcmp(name, loading[i].name) == 0)
            return !present || present == elf_find_symbol(name) ? loading[i].ours : NULL;
    return present ? vgpu_substitute(name, present) : functions_wrapper(name);
}

void vgpu_bind_namespace(void) { relocations_bind(replace); }

/* The second call is a jump, so that the loader sees the program's return address: where the file is not found
 * otherwise, it lies on a search path of the calling object. What is loaded that way is bound by the next call. */
void *vgpu_dlopen(const char *path, int flags) {
    dlopen_function load = LIBC(dlopen);
    bool is_deep = path && (flags & RTLD_DEEPBIND);
    if (is_deep && load(path, flags)) vgpu_bind_namespace();
    __attribute__((musttail)) return load(path, flags);
}

/* Loads a copy of this library into the namespace of `handle`, and binds the namespace's objects to the copy. */
static bool adopt(dlmopen_function load, void *handle) {
    Dl_info self;
    Lmid_t space;
    if (LIBC(dlinfo)(handle, RTLD_DI_LMID, &space) != 0 || !LIBC(dladdr)((void *)&vgpu_bind_namespace, &self))
        return false;
    if (space == LM_ID_BASE) return true;
    void *copy = load(space, self.dli_fname, RTLD_NOW);
    void (*bind)(void) = (void (*)(void))(copy ? LIBC(dlsym)(copy, "vgpu_bind_namespace") : NULL);
    if (!bind) return false;
    namespaces_add((namespaces_function)LIBC(dlsym)(copy, "vgpu_substitute"));
    bind();
    return true;
}

void *vgpu_dlmopen(Lmid_t space, const char *path, int flags) {
    dlmopen_function load = LIBC(dlmopen);
    void *handle = load ? load(space, path, flags) : NULL;
    if (!handle || adopt(load, handle)) return handle;
    log_warn("dlmopen of %s refused: the limits cannot be applied in its namespace", path);
    LIBC(dlclose)(handle);
    return NULL;
}
/* NOLINTEND(misc-use-internal-linkage) */

/* The symbol versions that programs link with: the first of the platform, and GLIBC_2.34, with which the functions
 * moved from libdl into libc. */
#if defined(__x86_64__)
__asm__(".symver vgpu_dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver vgpu_dlmopen,dlmopen@GLIBC_2.3.4");
#elif defined(__aarch64__)
__asm__(".symver vgpu_dlopen,dlopen@GLIBC_2.17");
__asm__(".symver vgpu_dlmopen,dlmopen@GLIBC_2.17");
#endif
__asm__(".symver vgpu_dlopen,dlopen@@GLIBC_2.34,remove");
__asm__(".symver vgpu_dlmopen,dlmopen@@GLIBC_2.34,remove");
