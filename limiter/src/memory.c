/* The functions that allocate and free. A NULL for the pointer's place goes to the driver as it is. */
#include "attempt.h"
#include "holdings.h"
#include "hooks.h"

/* The pitch that every architecture's driver is content with. */
#define PITCH_ALIGNMENT 512ULL

/* The rest of an allocating function's body after `attempt_begin`; the arguments are the real function's. */
#define ALLOCATE(attempt, name, pointer, ...)                      \
    do {                                                           \
        if ((attempt).is_refused) return CUDA_ERROR_OUT_OF_MEMORY; \
        CUresult result;                                           \
        do result = REAL(name)(pointer, __VA_ARGS__);              \
        while (attempt_again(&(attempt), result));                 \
        return attempt_finish(&(attempt), result, pointer);        \
    } while (0)

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    if (!pointer) return REAL(cuMemAlloc_v2)(pointer, bytes);
    struct attempt attempt = attempt_begin("cuMemAlloc_v2", bytes);
    ALLOCATE(attempt, cuMemAlloc_v2, pointer, bytes);
}

/* The pitch is the driver's choice, made in the call: charged is the widest. */
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element) {
    if (!pointer) return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    uint64_t row = round_up(width, PITCH_ALIGNMENT);
    uint64_t bytes = height != 0 && row > UINT64_MAX / height ? UINT64_MAX : row * height;
    struct attempt attempt = attempt_begin("cuMemAllocPitch_v2", bytes);
    ALLOCATE(attempt, cuMemAllocPitch_v2, pointer, pitch, width, height, element);
}

/* Managed memory may all come to lie on the card: charged in full. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags) {
    if (!pointer) return REAL(cuMemAllocManaged)(pointer, bytes, flags);
    struct attempt attempt = attempt_begin("cuMemAllocManaged", bytes);
    ALLOCATE(attempt, cuMemAllocManaged, pointer, bytes, flags);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    if (!pointer) return REAL(cuMemAllocAsync)(pointer, bytes, stream);
    struct attempt attempt = attempt_begin_in_pool("cuMemAllocAsync", bytes);
    ALLOCATE(attempt, cuMemAllocAsync, pointer, bytes, stream);
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    if (!pointer) return REAL(cuMemAllocAsync_ptsz)(pointer, bytes, stream);
    struct attempt attempt = attempt_begin_in_pool("cuMemAllocAsync_ptsz", bytes);
    ALLOCATE(attempt, cuMemAllocAsync_ptsz, pointer, bytes, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    if (!pointer) return REAL(cuMemAllocFromPoolAsync)(pointer, bytes, pool, stream);
    struct attempt attempt = attempt_begin_in_pool("cuMemAllocFromPoolAsync", bytes);
    ALLOCATE(attempt, cuMemAllocFromPoolAsync, pointer, bytes, pool, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    if (!pointer) return REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, bytes, pool, stream);
    struct attempt attempt = attempt_begin_in_pool("cuMemAllocFromPoolAsync_ptsz", bytes);
    ALLOCATE(attempt, cuMemAllocFromPoolAsync_ptsz, pointer, bytes, pool, stream);
}

static CUresult settle(CUdeviceptr pointer, struct holding holding, CUresult result) {
    if (result != CUDA_SUCCESS) holding.bytes = holdings_put_back(pointer, &holding);
    if (holding.bytes) charge_release(holding.card, holding.bytes);
    return result;
}

/* Taken before the driver's call, for after it another thread may be given the same pointer. What was never charged
 * goes to the driver as it is. */
#define FREE(name, pointer, ...)                                              \
    do {                                                                      \
        struct holding holding;                                               \
        bool known = charge_is_limited() && holdings_take(pointer, &holding); \
        CUresult result = REAL(name)(__VA_ARGS__);                            \
        return known ? settle(pointer, holding, result) : result;             \
    } while (0)

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) { FREE(cuMemFree_v2, pointer, pointer); }

EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) { FREE(cuMemFreeAsync, pointer, pointer, stream); }

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
    FREE(cuMemFreeAsync_ptsz, pointer, pointer, stream);
}
