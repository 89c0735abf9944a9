/* A library that uses CUDA: linked with the driver, or with -DLOOKED_UP by dlopen and dlsym. `use` stores the results
 * of starting CUDA and of two allocations. With -DIN_CONSTRUCTOR that is done when the library is loaded. */
#include <dlfcn.h>
#include <stddef.h>

typedef int (*init_function)(unsigned);
typedef int (*retain_function)(void **, int);
typedef int (*set_function)(void *);
typedef int (*allocate_function)(unsigned long long *, size_t);

#ifdef LOOKED_UP
static void *driver;
#define FIND(name, kind) ((kind)dlsym(driver, #name))
#else
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes);
#define FIND(name, kind) ((kind)name)
#endif

void use(size_t bytes, int results[3]);
void use(size_t bytes, int results[3]) {
    void *context = NULL;
    unsigned long long pointer;
#ifdef LOOKED_UP
    driver = dlopen("libcuda.so.1", RTLD_NOW | FLAGS);
#endif
    results[0] = FIND(cuInit, init_function)(0);
    if (results[0] == 0) results[0] = FIND(cuDevicePrimaryCtxRetain, retain_function)(&context, 0);
    if (results[0] == 0) results[0] = FIND(cuCtxSetCurrent, set_function)(context);
    for (int i = 1; i < 3; i++) results[i] = FIND(cuMemAlloc_v2, allocate_function)(&pointer, bytes);
}

#ifdef IN_CONSTRUCTOR
int constructed[3];
__attribute__((constructor)) static void construct(void) { use(40 << 20, constructed); }
#endif
