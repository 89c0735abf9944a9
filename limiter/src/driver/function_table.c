#include "driver/function_table.h"

#include <dlfcn.h>

#include "loader/libc.h"
#include "loader/own_strings.h"

struct entry {
    const char *name;
    enum library library;
    void *wrapper; /* NULL: not HOOKED */
    void *real;    /* atomic; NULL until the library is resolved, or where it lacks the function */
};

#define HOOKED(name, class) [FN_##name] = {#name, LIBRARY, (void *)&(name), NULL},
#define CALLED(name, class) [FN_##name] = {#name, LIBRARY, NULL, NULL},
static struct entry table[FUNCTIONS] = {
#include "driver/functions.h"
};

/* NVIDIA's libraries. limiter/interpose.py loads a library of its own under the soname `name`; NVIDIA's library is then
 * loaded as `preloaded_name`. */
static struct {
    const char *preloaded_name;
    const char *name;
    const char *prefix; /* of the names of its functions */
    void *handle;       /* atomic */
    bool is_resolved;   /* atomic, stored last with release order: the library's `real` addresses are known */
} libraries[LIBRARIES] = {
    [CUDA] = {"libvgpu-real-cuda.so", "libcuda.so.1", "cu", NULL, false},
    [NVML] = {"libvgpu-real-nvml.so", "libnvidia-ml.so.1", "nvml", NULL, false},
};

static CUresult cuda_not_found(void) { return CUDA_ERROR_NOT_FOUND; }

static nvmlReturn_t nvml_not_found(void) { return NVML_ERROR_FUNCTION_NOT_FOUND; }

static void *open_library(enum library library, bool may_load) {
    void *handle = dlopen(libraries[library].preloaded_name, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? handle : dlopen(libraries[library].name, RTLD_LAZY | (may_load ? 0 : RTLD_NOLOAD));
}

/* Fills in the real addresses of a library. Takes no lock: dlopen waits for the loader's lock, and a thread that holds
 * the loader's lock may come in here, so another lock could deadlock. Racing threads store equal addresses. The handle
 * is never closed, so that the addresses stay valid. */
static bool resolve(enum library library, bool may_load) {
    if (__atomic_load_n(&libraries[library].is_resolved, __ATOMIC_ACQUIRE)) return true;
    void *handle = open_library(library, may_load);
    if (!handle) return false;
    for (int i = 0; i < FUNCTIONS; i++)
        if (table[i].library == library)
            __atomic_store_n(&table[i].real, LIBC(dlsym)(handle, table[i].name), __ATOMIC_RELAXED);
    __atomic_store_n(&libraries[library].handle, handle, __ATOMIC_RELAXED);
    __atomic_store_n(&libraries[library].is_resolved, true, __ATOMIC_RELEASE);
    return true;
}

void *functions_handle(enum library library) {
    return resolve(library, false) ? __atomic_load_n(&libraries[library].handle, __ATOMIC_RELAXED) : NULL;
}

bool functions_is_handle(const void *handle) {
    return handle == __atomic_load_n(&libraries[CUDA].handle, __ATOMIC_RELAXED) ||
           handle == __atomic_load_n(&libraries[NVML].handle, __ATOMIC_RELAXED);
}

const char *functions_soname(enum library library) { return libraries[library].name; }

bool functions_is_named_as(const char *name, enum library library) {
    return own_strings_begins_with(name, libraries[library].prefix);
}

static void *find_real(enum function function) {
    resolve(table[function].library, true);
    void *real = __atomic_load_n(&table[function].real, __ATOMIC_RELAXED);
    if (real) return real;
    return table[function].library == CUDA ? (void *)&cuda_not_found : (void *)&nvml_not_found;
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

static struct entry *find_hooked(const char *name) {
    if (!functions_is_named_as(name, CUDA) && !functions_is_named_as(name, NVML)) return NULL;
    for (int i = 0; i < FUNCTIONS; i++)
        if (table[i].wrapper && own_strings_are_equal(table[i].name, name)) return &table[i];
    return NULL;
}

void *functions_wrapper(const char *name) {
    const struct entry *entry = find_hooked(name);
    return entry ? entry->wrapper : NULL;
}

bool functions_is_hooked(const char *name) { return find_hooked(name) != NULL; }

void *functions_loaded_wrapper(const char *name) {
    struct entry *entry = find_hooked(name);
    bool is_loaded = entry && resolve(entry->library, false) && __atomic_load_n(&entry->real, __ATOMIC_RELAXED);
    return is_loaded ? entry->wrapper : NULL;
}
