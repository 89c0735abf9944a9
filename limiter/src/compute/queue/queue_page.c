#include "compute/queue/queue_page.h"

#include <string.h>

#include "common/environment.h"
#include "common/region_layout.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "process/fork.h"

/* One cache line for each word, so that the card's accesses to one do not meet the host's to another. */
enum { WORD_STRIDE = 64, GATE_STRIDE = 2 * WORD_STRIDE, PAGE_SIZE = GATE_STRIDE * REGION_CARDS };

/* More segments than are ever closed, and less than half of the cyclic range. */
#define FAR_AHEAD (UINT32_C(1) << 30)

enum state { UNKNOWN, PROBING, USABLE, UNUSABLE };

static uint32_t state_word; /* atomic; enum state */

static struct queue_page pages[QUEUE_PAGES];

/* The newest segment of each gate that was opened, guarded by the gate's lock: a launch that is under way may wait for
 * it in a new page. */
static uint32_t opened[REGION_CARDS]; /* atomic */

static uint32_t *open_word(char *host, unsigned gate) { return (uint32_t *)(host + (size_t)gate * GATE_STRIDE); }

static uint32_t *begun_word(char *host, unsigned gate) {
    return (uint32_t *)(host + (size_t)gate * GATE_STRIDE + WORD_STRIDE);
}

static char *host_of(const struct queue_page *page) { return __atomic_load_n(&page->host, __ATOMIC_ACQUIRE); }

static CUcontext context_of(const struct queue_page *page) { return __atomic_load_n(&page->context, __ATOMIC_ACQUIRE); }

static struct queue_page *page_of(CUcontext context) {
    for (int i = 0; i < QUEUE_PAGES; i++)
        if (context_of(&pages[i]) == context && host_of(&pages[i])) return &pages[i];
    return NULL;
}

bool queue_page_has(CUcontext context) { return page_of(context) != NULL; }

static bool is_set(const char *name, const char *value) {
    const char *found = environment_find(name);
    return found && (!value || strcmp(found, value) == 0);
}

static bool is_allowed(void) {
    return !is_set("CUDA_LAUNCH_BLOCKING", "1") && !is_set("CUDA_INJECTION64_PATH", NULL) &&
           !is_set("VGPU_QUEUE_AHEAD", "0");
}

static bool is_mps(CUdevice device) {
    int is_enabled = 0;
    return REAL(cuDeviceGetAttribute)(&is_enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) == CUDA_SUCCESS &&
           is_enabled;
}

static bool allocate(struct queue_page *page) {
    void *host = NULL;
    CUdeviceptr address = 0;
    if (REAL(cuCtxGetDevice)(&page->device) != CUDA_SUCCESS) return false;
    if (REAL(cuMemHostAlloc)(&host, PAGE_SIZE, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) return false;
    memset(host, 0, PAGE_SIZE);
    for (unsigned gate = 0; gate < REGION_CARDS; gate++)
        *open_word(host, gate) = *begun_word(host, gate) = __atomic_load_n(&opened[gate], __ATOMIC_RELAXED);
    if (REAL(cuMemHostGetDevicePointer_v2)(&address, host, 0) != CUDA_SUCCESS) return false;
    page->address = address;
    __atomic_store_n(&page->host, host, __ATOMIC_RELEASE);
    return true;
}

static bool probe(void) {
    CUdevice device;
    bool has_functions = functions_has(FN_cuStreamWaitValue32_v2) && functions_has(FN_cuStreamWriteValue32_v2);
    return is_allowed() && has_functions && REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS && !is_mps(device);
}

static enum state state(void) { return (enum state)__atomic_load_n(&state_word, __ATOMIC_ACQUIRE); }

static void set_state(enum state value) { __atomic_store_n(&state_word, value, __ATOMIC_RELEASE); }

static bool is_probed(void) {
    uint32_t unknown = UNKNOWN;
    if (state() == UNKNOWN &&
        __atomic_compare_exchange_n(&state_word, &unknown, PROBING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        set_state(probe() ? USABLE : UNUSABLE);
    return state() == USABLE;
}

static struct queue_page *claim(CUcontext context) {
    for (int i = 0; i < QUEUE_PAGES; i++) {
        CUcontext none = NULL;
        if (__atomic_compare_exchange_n(&pages[i].context, &none, context, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return &pages[i];
    }
    return NULL;
}

static bool make_page(CUcontext context) {
    struct queue_page *page = claim(context);
    bool is_made = false;
    if (page) CAPTURE_ALLOWS(is_made = allocate(page));
    if (page && !is_made) __atomic_store_n(&page->context, NULL, __ATOMIC_RELEASE);
    return is_made;
}

bool queue_page_is_usable(void) {
    CUcontext context = NULL;
    if (!is_probed() || REAL(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || !context) return false;
    return queue_page_has(context) || make_page(context);
}

void queue_page_refuse(void) { set_state(UNUSABLE); }

static bool is_ending(const struct queue_page *page, int device, CUcontext context) {
    if (context) return context_of(page) == context;
    return device < 0 || page->device == device;
}

static struct queue_page hide(struct queue_page *page) {
    struct queue_page hidden = {context_of(page), host_of(page), page->device, page->address};
    __atomic_store_n(&page->host, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&page->context, NULL, __ATOMIC_RELEASE);
    return hidden;
}

void queue_page_hide(int device, CUcontext context, struct hidden_pages *hidden) {
    for (int i = 0; i < QUEUE_PAGES; i++) {
        bool is_hidden = host_of(&pages[i]) && is_ending(&pages[i], device, context);
        hidden->pages[i] = is_hidden ? hide(&pages[i]) : (struct queue_page){0};
    }
}

void queue_page_open_hidden(const struct hidden_pages *hidden) {
    for (int i = 0; i < QUEUE_PAGES; i++)
        for (unsigned gate = 0; hidden->pages[i].host && gate < REGION_CARDS; gate++)
            __atomic_store_n(open_word(hidden->pages[i].host, gate),
                             __atomic_load_n(&opened[gate], __ATOMIC_RELAXED) + FAR_AHEAD, __ATOMIC_RELEASE);
}

/* Another thread may have made a page for the context meanwhile. */
static void restore(const struct queue_page *hidden) {
    struct queue_page *page = queue_page_has(hidden->context) ? NULL : claim(hidden->context);
    if (!page) return;
    page->device = hidden->device;
    page->address = hidden->address;
    __atomic_store_n(&page->host, hidden->host, __ATOMIC_RELEASE);
}

void queue_page_restore(const struct hidden_pages *hidden) {
    for (int i = 0; i < QUEUE_PAGES; i++)
        if (hidden->pages[i].host) restore(&hidden->pages[i]);
}

void queue_page_wait(CUcontext context, CUstream stream, unsigned gate, uint32_t number) {
    const struct queue_page *page = page_of(context);
    if (!page) return;
    CUdeviceptr word = page->address + (CUdeviceptr)gate * GATE_STRIDE;
    if (REAL(cuStreamWaitValue32_v2)(stream, word, number, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS)
        set_state(UNUSABLE);
}

void queue_page_mark(CUcontext context, CUstream stream, unsigned gate, uint32_t number) {
    const struct queue_page *page = page_of(context);
    if (!page) return;
    CUdeviceptr word = page->address + (CUdeviceptr)gate * GATE_STRIDE + WORD_STRIDE;
    if (REAL(cuStreamWriteValue32_v2)(stream, word, number, CU_STREAM_WRITE_VALUE_DEFAULT) != CUDA_SUCCESS)
        set_state(UNUSABLE);
}

void queue_page_open(unsigned gate, uint32_t number) {
    __atomic_store_n(&opened[gate], number, __ATOMIC_RELAXED);
    for (int i = 0; i < QUEUE_PAGES; i++) {
        char *host = host_of(&pages[i]);
        if (host) __atomic_store_n(open_word(host, gate), number, __ATOMIC_RELEASE);
    }
}

uint32_t queue_page_begun(unsigned gate, uint32_t known) {
    for (int i = 0; i < QUEUE_PAGES; i++) {
        char *host = host_of(&pages[i]);
        uint32_t begun = host ? __atomic_load_n(begun_word(host, gate), __ATOMIC_ACQUIRE) : known;
        if ((int32_t)(begun - known) > 0) known = begun;
    }
    return known;
}

static void forget(void) {
    state_word = UNKNOWN;
    memset(pages, 0, sizeof pages);
    memset(opened, 0, sizeof opened);
}
FORGET_IN_CHILD(forget);
