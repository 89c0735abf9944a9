#include "compute/queue/stream_waits.h"

#include "common/arithmetic.h"
#include "driver/capture.h"
#include "driver/function_table.h"
#include "process/fork.h"

/* Waits of one stream before its next launch that are measured. */
enum { KEPT = 4 };

/* What a thread keeps until its next launch into the stream. */
static __thread struct {
    uint32_t contexts_ended; /* as of its first wait */
    CUcontext context;
    CUstream stream;
    unsigned count; /* of `waits`, with that which is begun */
    struct stream_wait waits[KEPT];
} kept;

static uint32_t contexts_ended; /* atomic */

void stream_waits_forget(void) { __atomic_fetch_add(&contexts_ended, 1, __ATOMIC_RELAXED); }
FORGET_IN_CHILD(stream_waits_forget);

/* Events that are of another context, or of one that has ended, are not destroyed here: they end with it. */
static void keep_for(CUcontext context, CUstream stream) {
    uint32_t ended = __atomic_load_n(&contexts_ended, __ATOMIC_RELAXED);
    if (kept.context != context || kept.contexts_ended != ended)
        for (int i = 0; i < KEPT; i++) kept.waits[i] = (struct stream_wait){0};
    if (kept.context != context || kept.contexts_ended != ended || kept.stream != stream) kept.count = 0;
    kept.contexts_ended = ended;
    kept.context = context;
    kept.stream = stream;
}

static bool record(CUevent *event, CUstream stream) {
    bool exists = *event || REAL(cuEventCreate)(event, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
    return exists && REAL(cuEventRecord)(*event, stream) == CUDA_SUCCESS;
}

static bool is_pending(CUevent event) {
    CUresult result = CUDA_SUCCESS;
    CAPTURE_ALLOWS(result = REAL(cuEventQuery)(event));
    return result == CUDA_ERROR_NOT_READY;
}

/* An event that has passed is waited for by nobody. */
bool stream_waits_begin(CUstream stream, CUevent awaited) {
    CUcontext context = NULL;
    if (!is_pending(awaited) || REAL(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || !context) return false;
    keep_for(context, stream);
    if (kept.count == KEPT) return false;
    bool is_begun = false;
    CAPTURE_ALLOWS(is_begun = record(&kept.waits[kept.count].begin, stream));
    return is_begun;
}

void stream_waits_end(CUstream stream) {
    bool is_ended = false;
    CAPTURE_ALLOWS(is_ended = record(&kept.waits[kept.count].end, stream));
    kept.count += is_ended;
}

/* The turn's events, which are not needed any more, are the thread's from now on. */
static void exchange(struct stream_wait *own, struct stream_wait *other) {
    struct stream_wait former = *own;
    *own = *other;
    *other = former;
}

void stream_waits_take(struct stream_waits *waits, CUcontext context, CUstream stream, bool is_counted) {
    if (kept.count == 0 || kept.stream != stream || kept.context != context) return;
    bool is_valid = kept.contexts_ended == __atomic_load_n(&contexts_ended, __ATOMIC_RELAXED);
    for (unsigned i = 0; is_counted && is_valid && i < kept.count; i++) {
        unsigned at = __atomic_fetch_add(&waits->count, 1, __ATOMIC_RELAXED);
        if (at < STREAM_WAITS) exchange(&waits->waits[at], &kept.waits[i]);
    }
    kept.count = 0;
}

void stream_waits_reset(struct stream_waits *waits) { __atomic_store_n(&waits->count, 0, __ATOMIC_RELAXED); }

uint64_t stream_waits_between(CUevent begin, CUevent end) {
    float ms = 0;
    CAPTURE_ALLOWS(if (REAL(cuEventElapsedTime)(&ms, begin, end) != CUDA_SUCCESS) ms = 0);
    return ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
}

static uint64_t within(const struct stream_wait *wait, CUevent begin, CUevent end) {
    uint64_t from_begin = min_u64(stream_waits_between(wait->begin, wait->end), stream_waits_between(begin, wait->end));
    return min_u64(from_begin, stream_waits_between(wait->begin, end));
}

uint64_t stream_waits_ns(const struct stream_waits *waits, CUevent begin, CUevent end) {
    uint64_t sum = 0;
    unsigned count = __atomic_load_n(&waits->count, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < count && i < STREAM_WAITS; i++) sum += within(&waits->waits[i], begin, end);
    return sum;
}

static void destroy(CUevent event) {
    if (event) CAPTURE_ALLOWS(REAL(cuEventDestroy_v2)(event));
}

void stream_waits_destroy(const struct stream_waits *waits) {
    for (int i = 0; i < STREAM_WAITS; i++) {
        destroy(waits->waits[i].begin);
        destroy(waits->waits[i].end);
    }
}
