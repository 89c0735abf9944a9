#include "charge/local_memory.h"

#include "books/pointers.h"
#include "charge/charge.h"
#include "charge/reconcile.h"
#include "charge/release.h"
#include "container/container.h"
#include "driver/capture.h"
#include "driver/function_table.h"

/* What a context's threads have from the beginning; kernels that need no more are remembered. */
enum { INITIAL_STACK_BYTES = 1024 };

/* A function takes the place of one that stands where it would; then that one is asked about again, in 50 ns. */
enum { CACHE_SLOTS = 4096 };
static uintptr_t small_kernels[CACHE_SLOTS]; /* atomically */

static uintptr_t *cache_slot(CUfunction function) {
    uint64_t hash = (uint64_t)(uintptr_t)function * 0x9e3779b97f4a7c15ULL;
    return &small_kernels[hash >> 52];
}

static_assert(CACHE_SLOTS == 1 << 12, "the high bits of the hash");

void local_memory_forget_all(void) {
    for (int i = 0; i < CACHE_SLOTS; i++) __atomic_store_n(&small_kernels[i], 0, __ATOMIC_RELAXED);
}

static int device_attribute(CUdevice_attribute which, CUdevice device) {
    int value = 0;
    return REAL(cuDeviceGetAttribute)(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/* How many threads the card can hold at once. */
static uint64_t resident_threads(CUdevice device) {
    return (uint64_t)device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) *
           (uint64_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
}

/* Bytes for one thread; 0 for what is no function, which the driver will say. */
static uint64_t local_bytes_per_thread(CUfunction function, CUdevice device) {
    int bytes = 0;
    CUresult result = REAL(cuFuncGetAttribute)(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
    if (result != CUDA_SUCCESS)
        result = REAL(cuKernelGetAttribute)(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, (CUkernel)function, device);
    return result == CUDA_SUCCESS && bytes > 0 ? (uint64_t)bytes : 0;
}

/* The question may be the first that the driver hears of the function, and make it load it. */
static uint64_t query_local_bytes(CUfunction function, CUdevice device) {
    if (!capture_was_seen()) return local_bytes_per_thread(function, device);
    uint64_t need = 0;
    CAPTURE_ALLOWS(need = local_bytes_per_thread(function, device));
    return need;
}

/* What the driver takes is in chunks, so up to one more. */
static uint64_t context_growth(uint64_t need, CUdevice device) {
    size_t stack = 0;
    REAL(cuCtxGetLimit)(&stack, CU_LIMIT_STACK_SIZE);
    return need > stack ? (need - stack) * resident_threads(device) + GRANULARITY : 0;
}

uint64_t local_memory_growth_to(size_t stack) {
    CUdevice device;
    return container_is_limited() && REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? context_growth(stack, device) : 0;
}

/* Not in the table: the driver is asked. */
static uint64_t query_growth(CUfunction function) {
    CUdevice device;
    if (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return 0;
    uint64_t need = query_local_bytes(function, device);
    reconcile_soon(); /* the first launch of a kernel may load its code, and make the heap that it uses */
    uint64_t growth = context_growth(need, device);
    if (growth != 0) return growth;
    if (need <= INITIAL_STACK_BYTES) __atomic_store_n(cache_slot(function), (uintptr_t)function, __ATOMIC_RELAXED);
    return 0;
}

uint64_t local_memory_growth(CUfunction function) {
    bool is_small = __atomic_load_n(cache_slot(function), __ATOMIC_RELAXED) == (uintptr_t)function;
    return is_small || !container_is_limited() ? 0 : query_growth(function);
}

struct attempt local_memory_begin_launch(const char *function_name, uint64_t growth) {
    CUdevice device;
    if (growth == 0 || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        return (struct attempt){.function_name = function_name};
    return attempt_begin_on(function_name, device, round_up(growth, GRANULARITY));
}

/* Nobody gives the memory back, so nobody remembers the charge: what is measured takes its slot. */
CUresult local_memory_end_launch(struct attempt *attempt, CUresult result) {
    if (!attempt->is_charged) return result;
    if (!reconcile_own(attempt->uuid, 1) && result != CUDA_SUCCESS)
        release_charge(attempt->reservation.card, attempt->reservation.bytes);
    attempt_end(attempt);
    return result;
}
