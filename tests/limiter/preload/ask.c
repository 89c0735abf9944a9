/* Looks up names with every handle that dlsym accepts; prints for each lookup the library of the result. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *home(void *address) {
    Dl_info info;
    if (!address || !dladdr(address, &info)) return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static void ask(const char *how, void *handle, const char *name) {
    dlerror();
    void *address = dlsym(handle, name);
    printf("%s %s %s%s\n", how, name, home(address), !address == !dlerror() ? " wrong dlerror" : "");
}

int main(void) {
    ask("default", RTLD_DEFAULT, "cuMemAlloc_v2");
    ask("next", RTLD_NEXT, "cuMemAlloc_v2");
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) return 1;
    ask("handle", cuda, "cuMemAlloc_v2");
    ask("handle", cuda, "cuDriverGetVersion");
    ask("handle", cuda, "cublasCreate");
    ask("default", RTLD_DEFAULT, "cuMemAlloc_v2");
    ask("next", RTLD_NEXT, "cuMemAlloc_v2");
    ask("default", RTLD_DEFAULT, "curl_easy_init");
    ask("default", RTLD_DEFAULT, "puts");
    void *other = dlopen("libother.so", RTLD_NOW);
    if (other) ask("other", other, "cuMemAlloc_v2");
    puts("end");
    return 0;
}
