#include "region/windows.h"

#include "common/arithmetic.h"

static const uint64_t lengths_ns[REGION_WINDOWS] = {1000 * NS_PER_MS, 10000 * NS_PER_MS};

enum { FULL_PERMILLE = 1000 };

/* Limited to 1000, because the region's content is not trusted. */
static uint32_t permille(uint64_t used, uint64_t took) {
    uint64_t ms = took / NS_PER_MS;
    return used >= took ? FULL_PERMILLE : (uint32_t)(used / NS_PER_MS * FULL_PERMILLE / ms);
}

static uint32_t in_ms(uint64_t ns) { return ns / NS_PER_MS < UINT32_MAX ? (uint32_t)(ns / NS_PER_MS) : UINT32_MAX; }

static void begin(struct region_window *window, uint64_t gpu_ns, uint64_t now) {
    __atomic_store_n(&window->gpu_ns, gpu_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&window->begun, now, __ATOMIC_RELAXED);
}

static void close_if_complete(struct region_window *window, uint64_t length, uint64_t gpu_ns, uint64_t now) {
    bool is_begun = window->begun != 0 && window->begun <= now;
    uint64_t took = is_begun ? now - window->begun : 0;
    if (is_begun && took < length) return;
    uint32_t share = is_begun ? permille(gpu_ns - window->gpu_ns, took) : 0;
    __atomic_store_n(&window->permille, share, __ATOMIC_RELAXED);
    __atomic_store_n(&window->took_ms, in_ms(took), __ATOMIC_RELAXED);
    begin(window, gpu_ns, now);
}

void windows_update(struct region_card *card, uint64_t now) {
    for (int i = 0; i < REGION_WINDOWS; i++) close_if_complete(&card->windows[i], lengths_ns[i], card->gpu_ns, now);
}
