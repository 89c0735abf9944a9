/* How the program finds the driver's functions, and what it notes of each call. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

struct functions cuda;
int wrong;

static void *library;

/* The limiter's wrapper, where it is linked into this program; else what the loader, or the preloaded limiter, says. */
static void *find(const char *name) {
    void *own = dlsym(RTLD_DEFAULT, name);
    void *found = own ? own : dlsym(library, name);
    if (!found) {
        (void)fprintf(stderr, "the driver has no %s\n", name);
        exit(2);
    }
    return found;
}

/* As programs of the CUDA runtime find them, in the form that CUDA 12.0 had, which is the one in calls.h but for contexts.
 */
static void query(const char *name, void **place) {
    char base[64];
    CUdriverProcAddressQueryResult status;
    CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    *(void **)&get = find("cuGetProcAddress_v2");
    (void)snprintf(base, sizeof base, "%s", name);
    char *version = strstr(base, "_v");
    bool has_form = strncmp(name, "cuCtxCreate", sizeof "cuCtxCreate" - 1) != 0;
    if (version) *version = '\0';
    void *found = NULL;
    if (has_form && get(base, &found, 12000, 0, &status) == CUDA_SUCCESS && found) *place = found;
}

void find_functions(bool by_query) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) exit(2);
#define CALL(name) *(void **)&cuda.name = find(#name);
#include "calls.h"
    if (!by_query) return;
#define CALL(name) query(#name, (void **)&cuda.name);
#include "calls.h"
}

unsigned next(struct walker *walker, unsigned most) {
    walker->chance = walker->chance * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(walker->chance >> 33) % most;
}

CUresult note(struct walker *walker, const char *what, CUresult result) {
    walker->calls++;
    CUresult shown = result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result; /* depends on time */
    (void)fprintf(walker->trace, "%u %s %d\n", walker->number, what, (int)shown);
    return result;
}

void complain(const struct walker *walker, const char *what, long value) {
    __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
    (void)fprintf(stderr, "walker %u: %s: %ld\n", walker->number, what, value);
}

void complain_of_call(const char *what, long value) {
    __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
    (void)fprintf(stderr, "%s: %ld\n", what, value);
}
