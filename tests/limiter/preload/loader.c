/* Loads a plugin.c, or the driver itself, in a way that bypasses preloaded libraries, and prints the three results that
 * `use` stores: loader {open|deep|space} PATH MIB. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *load(const char *way, const char *path) {
    if (strcmp(way, "space") == 0) return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    return dlopen(path, strcmp(way, "deep") == 0 ? RTLD_LAZY | RTLD_DEEPBIND : RTLD_NOW);
}

static void use_driver(void *driver, size_t bytes, int results[3]) {
    void *context = NULL;
    unsigned long long pointer;
    results[0] = ((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
    results[0] |= ((int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
    results[0] |= ((int (*)(void *))dlsym(driver, "cuCtxSetCurrent"))(context);
    for (int i = 1; i < 3; i++)
        results[i] = ((int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2"))(&pointer, bytes);
}

/* Holds twice as many MiB in the program's own namespace first. */
static void hold(const char *mib) {
    int results[3];
    void *driver = mib ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
    if (driver) use_driver(driver, (size_t)atoi(mib) << 20, results);
}

int main(int count, char **arguments) {
    int results[3] = {-1, -1, -1};
    hold(getenv("HOLD_MIB"));
    void *loaded = count > 3 ? load(arguments[1], arguments[2]) : NULL;
    if (!loaded) return fprintf(stderr, "%s\n", dlerror()) > 0;
    size_t bytes = (size_t)atoi(arguments[3]) << 20;
    void (*use)(size_t, int *) = (void (*)(size_t, int *))dlsym(loaded, "use");
    use ? use(bytes, results) : use_driver(loaded, bytes, results);
    printf("[%d, %d, %d]\n", results[0], results[1], results[2]);
    return 0;
}
