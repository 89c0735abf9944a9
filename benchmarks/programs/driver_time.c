/* A libcuda.so.1 between the limiter and the driver, which measures the time of each thread in the driver's own
 * functions by which the workers of kills.c allocate. The linker finds all other functions in the driver itself, on
 * which this library depends by another file name (driver_time.py).
 *
 * The limiter replaces dlsym, which would return the limiter's functions. So the C library's dlsym is found as the
 * limiter finds it. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>

#include "loader/elf.h"
#include "now.h"

#define EXPORT __attribute__((visibility("default")))

typedef void *(*finder)(void *, const char *);

static __thread uint64_t spent_ns;

EXPORT uint64_t driver_spent_ns(void);
uint64_t driver_spent_ns(void) { return spent_ns; }

static void *find(const char *name) {
    finder lookup = (finder)elf_find_symbol("dlsym");
    void *driver = dlopen(REAL_DRIVER, RTLD_NOW | RTLD_NOLOAD);
    return lookup && driver ? lookup(driver, name) : NULL;
}

#define MEASURED(name, parameters, ...)                  \
    EXPORT CUresult name parameters {                    \
        static __typeof__(&(name)) real;                 \
        if (!real) real = (__typeof__(real))find(#name); \
        if (!real) return CUDA_ERROR_NOT_FOUND;          \
        uint64_t begun = now_ns();                       \
        CUresult result = real(__VA_ARGS__);             \
        spent_ns += now_ns() - begun;                    \
        return result;                                   \
    }

MEASURED(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes), pointer, bytes)
MEASURED(cuMemAllocPitch_v2, (CUdeviceptr * pointer, size_t *pitch, size_t width, size_t height, unsigned element),
         pointer, pitch, width, height, element)
MEASURED(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned flags), pointer, bytes, flags)
MEASURED(cuMemAllocAsync, (CUdeviceptr * pointer, size_t bytes, CUstream stream), pointer, bytes, stream)
MEASURED(cuMemCreate,
         (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *properties,
          unsigned long long flags),
         handle, bytes, properties, flags)
MEASURED(cuMemAddressReserve,
         (CUdeviceptr * pointer, size_t bytes, size_t alignment, CUdeviceptr where, unsigned long long flags), pointer,
         bytes, alignment, where, flags)
MEASURED(cuMemMap,
         (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
          unsigned long long flags),
         pointer, bytes, offset, handle, flags)
MEASURED(cuMemSetAccess, (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count), pointer,
         bytes, access, count)
MEASURED(cuMemsetD8_v2, (CUdeviceptr pointer, unsigned char value, size_t bytes), pointer, value, bytes)
MEASURED(cuCtxSynchronize, (void))
