#include "compute/queue_page.h"

#include <stdlib.h>
#include <string.h>

#include "common/region_layout.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "process/fork.h"

/* One cache line for each gate's word, so that the card's reads of one do not meet the host's stores to another. */
enum { WORD_STRIDE = 64, PAGE_SIZE = WORD_STRIDE * REGION_CARDS };

enum state { UNKNOWN, PROBING, USABLE, UNUSABLE };

static struct {
    uint32_t state; /* atomic; enum state */
    char *host;
    CUdeviceptr device;
} page;

static bool is_set(const char *name, const char *value) {
    const char *found = secure_getenv(name);
    return found && (!value || strcmp(found, value) == 0);
}

static bool is_allowed(void) {
    return !is_set("CUDA_LAUNCH_BLOCKING", "1") && !is_set("CUDA_INJECTION64_PATH", NULL) &&
           is_set("VGPU_QUEUE_AHEAD", "1");
}

static bool is_mps(CUdevice device) {
    int is_enabled = 0;
    return REAL(cuDeviceGetAttribute)(&is_enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) == CUDA_SUCCESS &&
           is_enabled;
}

static bool allocate(void) {
    void *host = NULL;
    CUdeviceptr device = 0;
    if (REAL(cuMemHostAlloc)(&host, PAGE_SIZE, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS)
        return false;
    memset(host, 0, PAGE_SIZE);
    if (REAL(cuMemHostGetDevicePointer_v2)(&device, host, 0) != CUDA_SUCCESS) return false;
    page.host = host;
    page.device = device;
    return true;
}

static bool probe(void) {
    CUdevice device;
    bool is_usable = false;
    if (!is_allowed() || !functions_has(FN_cuStreamWaitValue32_v2)) return false;
    if (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS || is_mps(device)) return false;
    CAPTURE_ALLOWS(is_usable = allocate());
    return is_usable;
}

static enum state state(void) { return (enum state)__atomic_load_n(&page.state, __ATOMIC_ACQUIRE); }

static void set_state(enum state value) { __atomic_store_n(&page.state, value, __ATOMIC_RELEASE); }

bool queue_page_is_usable(void) {
    uint32_t unknown = UNKNOWN;
    if (state() == UNKNOWN &&
        __atomic_compare_exchange_n(&page.state, &unknown, PROBING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        set_state(probe() ? USABLE : UNUSABLE);
    return state() == USABLE;
}

void queue_page_refuse(void) { set_state(UNUSABLE); }

void queue_page_release(void) {
    if (state() == USABLE) set_state(UNKNOWN);
}

void queue_page_wait(CUstream stream, unsigned gate, uint32_t number) {
    CUresult result = REAL(cuStreamWaitValue32_v2)(stream, page.device + (CUdeviceptr)gate * WORD_STRIDE, number,
                                                   CU_STREAM_WAIT_VALUE_GEQ);
    if (result != CUDA_SUCCESS) set_state(UNUSABLE);
}

void queue_page_open(unsigned gate, uint32_t number) {
    if (page.host) __atomic_store_n((uint32_t *)(page.host + (size_t)gate * WORD_STRIDE), number, __ATOMIC_RELEASE);
}

static void forget(void) { memset(&page, 0, sizeof page); }
FORGET_IN_CHILD(forget);
