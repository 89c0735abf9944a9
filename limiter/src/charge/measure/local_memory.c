#include "charge/measure/local_memory.h"

#include "books/pointers/pointers.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "driver/handle_set.h"

/* Local memory that a new context has for each thread. A kernel that needs no more never grows a context, so it is
 * remembered in the table below. */
enum { INITIAL_STACK_BYTES = 1024 };

static struct handle_set small_kernels; /* of CUfunction; a launch of one that is not in it costs a query (50 ns) */

void local_memory_forget_all(void) { handle_set_empty(&small_kernels); }

static int device_attribute(CUdevice_attribute which, CUdevice device) {
    int value = 0;
    return REAL(cuDeviceGetAttribute)(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

static uint64_t resident_threads(CUdevice device) {
    return (uint64_t)device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) *
           (uint64_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
}

/* 0 if the driver knows neither a function nor a kernel by this handle: the launch itself then fails. */
static uint64_t local_bytes_per_thread(CUfunction function, CUdevice device) {
    int bytes = 0;
    CUresult result = REAL(cuFuncGetAttribute)(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
    if (result != CUDA_SUCCESS)
        result = REAL(cuKernelGetAttribute)(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, (CUkernel)function, device);
    return result == CUDA_SUCCESS && bytes > 0 ? (uint64_t)bytes : 0;
}

/* The query may be the first use of the function, and make the driver load it, which would invalidate a capture. */
static uint64_t query_local_bytes(CUfunction function, CUdevice device) {
    if (!capture_was_seen()) return local_bytes_per_thread(function, device);
    uint64_t need = 0;
    CAPTURE_ALLOWS(need = local_bytes_per_thread(function, device));
    return need;
}

/* The driver allocates whole chunks, so it may take up to one more. */
static uint64_t context_growth(uint64_t need, CUdevice device) {
    size_t stack = 0;
    REAL(cuCtxGetLimit)(&stack, CU_LIMIT_STACK_SIZE);
    return need > stack ? (need - stack) * resident_threads(device) + GRANULARITY : 0;
}

uint64_t local_memory_growth_to(size_t stack) {
    CUdevice device;
    return container_is_limited() && REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? context_growth(stack, device) : 0;
}

static uint64_t query_growth(CUfunction function) {
    CUdevice device;
    if (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return 0;
    uint64_t need = query_local_bytes(function, device);
    reconcile_soon(); /* the first launch of a kernel may load its code and create the device heap */
    uint64_t growth = context_growth(need, device);
    if (growth != 0) return growth;
    if (need <= INITIAL_STACK_BYTES) handle_set_add(&small_kernels, (uintptr_t)function);
    return 0;
}

uint64_t local_memory_growth(CUfunction function) {
    bool is_small = handle_set_has(&small_kernels, (uintptr_t)function);
    return is_small || !container_is_limited() ? 0 : query_growth(function);
}

struct attempt local_memory_begin_launch(const char *function_name, uint64_t growth) {
    CUdevice device;
    if (growth == 0 || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        return (struct attempt){.function_name = function_name};
    return attempt_begin_on(function_name, device, round_up(growth, GRANULARITY));
}

/* No call frees local memory, so the charge is not recorded anywhere: reconciling replaces the reservation. */
CUresult local_memory_end_launch(struct attempt *attempt, CUresult result) {
    if (!attempt->is_charged) return result;
    if (!reconcile_own(attempt->uuid, 1) && result != CUDA_SUCCESS)
        release_charge(attempt->reservation.card, attempt->reservation.bytes);
    attempt_end(attempt);
    return result;
}
