/* Uses copies of the driver one after the other in one process: two_drivers MIB WAY:PATH... Each use starts CUDA,
 * allocates MIB and asks for the memory's size. It prints a line [start, allocation, MiB that CUDA says there are, MiB
 * that NVML says there are]. WAY is open, deep (RTLD_DEEPBIND), space (dlmopen), or address (functions are looked up by
 * cuGetProcAddress); nvml:PATH loads the NVML that is asked from then on. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*lookup_function)(const char *, void **, int, unsigned long long, void *);

static void *nvml, *driver;
static int by_address;

static void *find(const char *name) {
    void *found = NULL;
    if (!by_address) return dlsym(driver, name);
    ((lookup_function)dlsym(driver, "cuGetProcAddress_v2"))(name, &found, 12000, 0, NULL);
    return found;
}

static void start(int *result) {
    void *context = NULL;
    int device = -1, version = 0;
    *result = ((int (*)(unsigned))find("cuInit"))(0);
    *result |= ((int (*)(int *))find("cuDriverGetVersion"))(&version);
    *result |= ((int (*)(int *, int))find("cuDeviceGet"))(&device, 0);
    *result |= ((int (*)(void **, int))find("cuDevicePrimaryCtxRetain"))(&context, device);
    *result |= ((int (*)(void *))find("cuCtxSetCurrent"))(context);
}

static long nvml_total(void) {
    void *card = NULL;
    unsigned long long memory[3] = {0};
    if (!nvml) return 0;
    ((int (*)(void))dlsym(nvml, "nvmlInit_v2"))();
    ((int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"))(0, &card);
    int result = ((int (*)(void *, void *))dlsym(nvml, "nvmlDeviceGetMemoryInfo"))(card, memory);
    return result ? -result : (long)(memory[0] >> 20);
}

static void use(size_t bytes) {
    unsigned long long pointer;
    size_t left = 0, all = 0;
    int started;
    start(&started);
    int allocated = ((int (*)(void *, size_t))find(by_address ? "cuMemAlloc" : "cuMemAlloc_v2"))(&pointer, bytes);
    ((int (*)(size_t *, size_t *))find(by_address ? "cuMemGetInfo" : "cuMemGetInfo_v2"))(&left, &all);
    printf("[%d, %d, %zu, %ld]\n", started, allocated, all >> 20, nvml_total());
}

static void *load(const char *way, const char *path) {
    if (strcmp(way, "space") == 0) return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    return dlopen(path, strcmp(way, "deep") == 0 ? RTLD_LAZY | RTLD_DEEPBIND : RTLD_NOW);
}

int main(int count, char **arguments) {
    for (int i = 2; i < count; i++) {
        char *way = arguments[i], *path = strchr(way, ':') + 1;
        path[-1] = '\0';
        void *loaded = load(strcmp(way, "nvml") == 0 ? "open" : way, path);
        if (!loaded) return fprintf(stderr, "%s\n", dlerror()) > 0;
        by_address = strcmp(way, "address") == 0;
        if (strcmp(way, "nvml") == 0)
            nvml = loaded;
        else
            driver = loaded, use((size_t)atoi(arguments[1]) << 20);
    }
    return 0;
}
