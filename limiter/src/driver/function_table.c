#include "driver/function_table.h"

#include <dlfcn.h>
#include <string.h>

#include "driver/resolve.h"

struct entry {
    const char *name;
    enum library library;
    void *wrapper; /* NULL: not hooked */
    void *real;    /* NULL until the library is resolved, or where it lacks the function */
};

#define HOOKED(name, class) [FN_##name] = {#name, LIBRARY, (void *)&(name), NULL},
#define CALLED(name, class) [FN_##name] = {#name, LIBRARY, NULL, NULL},
static struct entry table[FUNCTIONS] = {
#include "driver/functions.h"
};

/* `door` is what the real library is called behind the ctypes door (limiter/preload.py), where we own its usual name.
 */
static struct {
    const char *door;
    const char *name;
    bool resolved;
} libraries[LIBRARIES] = {
    [CUDA] = {"libvgpu-real-cuda.so", "libcuda.so.1", false},
    [NVML] = {"libvgpu-real-nvml.so", "libnvidia-ml.so.1", false},
};

static CUresult cuda_lacks(void) { return CUDA_ERROR_NOT_FOUND; }

static nvmlReturn_t nvml_lacks(void) { return NVML_ERROR_FUNCTION_NOT_FOUND; }

static void *open_library(enum library library, bool load) {
    void *handle = dlopen(libraries[library].door, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? handle : dlopen(libraries[library].name, RTLD_LAZY | (load ? 0 : RTLD_NOLOAD));
}

/* Without a lock of ours, for a thread that holds the loader's may be waiting for one in here: whoever comes at the
 * same time finds the same addresses. The handle is never closed, so that they stay true. */
static bool resolve(enum library library, bool load) {
    if (__atomic_load_n(&libraries[library].resolved, __ATOMIC_ACQUIRE)) return true;
    void *handle = open_library(library, load);
    if (!handle) return false;
    for (int i = 0; i < FUNCTIONS; i++)
        if (table[i].library == library)
            __atomic_store_n(&table[i].real, resolve_real_dlsym(handle, table[i].name), __ATOMIC_RELAXED);
    __atomic_store_n(&libraries[library].resolved, true, __ATOMIC_RELEASE);
    return true;
}

/* Only the first time is there anything to resolve. */
static void *find_real(enum function function) {
    resolve(table[function].library, true);
    void *real = __atomic_load_n(&table[function].real, __ATOMIC_RELAXED);
    if (real) return real;
    return table[function].library == CUDA ? (void *)&cuda_lacks : (void *)&nvml_lacks;
}

void *functions_real(enum function function) {
    void *real = __atomic_load_n(&table[function].real, __ATOMIC_RELAXED);
    return real ? real : find_real(function);
}

bool functions_has(enum function function) {
    return resolve(table[function].library, true) && __atomic_load_n(&table[function].real, __ATOMIC_RELAXED);
}

void *functions_substitute(void *address) {
    if (!address) return NULL;
    resolve(CUDA, false);
    resolve(NVML, false);
    for (int i = 0; i < FUNCTIONS; i++)
        if (table[i].wrapper && __atomic_load_n(&table[i].real, __ATOMIC_RELAXED) == address) return table[i].wrapper;
    return address;
}

static struct entry *find(const char *name) {
    if (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvml", 4) != 0) return NULL;
    for (int i = 0; i < FUNCTIONS; i++)
        if (table[i].wrapper && strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

bool functions_is_hooked(const char *name) { return find(name) != NULL; }

void *functions_loaded_wrapper(const char *name) {
    struct entry *entry = find(name);
    bool there = entry && resolve(entry->library, false) && __atomic_load_n(&entry->real, __ATOMIC_RELAXED);
    return there ? entry->wrapper : NULL;
}
