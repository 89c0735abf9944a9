#include "probe/driver.h"

#include <dlfcn.h>
#include <stdio.h>

struct driver cuda;

int failed(const char *what, int result) {
    printf("{\"error\":\"%s\",\"result\":%d}\n", what, result);
    return 1;
}

#ifdef GPUPROBE_LINKED
#define ASSIGN(name, version, symbol, parameters) cuda.name##_ = symbol;
static int load_cuda(bool by_proc, bool in_namespace) {
    (void)by_proc;
    (void)in_namespace;
    FUNCTIONS(ASSIGN)
    return 0;
}
#else
static const struct {
    const char *name;
    int version;
    const char *symbol;
    void **place;
} functions[] = {
#define ROW(name, version, symbol, parameters) {#name, version, #symbol, (void **)&cuda.name##_},
    FUNCTIONS(ROW)};

#define COUNT (sizeof functions / sizeof *functions)

static int load_by_proc(void *library) {
    CUdriverProcAddressQueryResult status;
    CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    if (!get) return failed("cuGetProcAddress_v2", CUDA_ERROR_NOT_FOUND);
    for (size_t i = 0; i < COUNT; i++) {
        CUresult result = get(functions[i].name, functions[i].place, functions[i].version, 0, &status);
        if (result != CUDA_SUCCESS || !*functions[i].place) return failed(functions[i].name, CUDA_ERROR_NOT_FOUND);
    }
    return 0;
}

static int load_by_symbol(void *library) {
    for (size_t i = 0; i < COUNT; i++) {
        *functions[i].place = dlsym(library, functions[i].symbol);
        if (!*functions[i].place) return failed(functions[i].symbol, CUDA_ERROR_NOT_FOUND);
    }
    return 0;
}

static int load_cuda(bool by_proc, bool in_namespace) {
    static const char name[] = "libcuda.so.1";
    void *library = in_namespace ? dlmopen(LM_ID_NEWLM, name, RTLD_NOW) : dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!library) return failed(name, -1);
    return by_proc ? load_by_proc(library) : load_by_symbol(library);
}
#endif

int start_cuda(bool by_proc, bool in_namespace) {
    if (load_cuda(by_proc, in_namespace) != 0) return 1;
    CUresult result = cuda.cuInit_(0);
    return result == CUDA_SUCCESS ? 0 : failed("cuInit", (int)result);
}
