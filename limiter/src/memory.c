/* Allocating and freeing: reserve, call the driver, then remember the charge or take it back. */
#include <time.h>

#include "cards.h"
#include "charge.h"
#include "hooks.h"
#include "log.h"

/* The driver hands out a card's memory in pieces of this size. */
#define GRANULE (2ULL << 20)

/* How often and how long to wait for memory that the driver is still freeing after a process's death. */
enum { RETRIES = 20, RETRY_MS = 10 };

/* The pitch that every architecture's driver is content with. */
#define PITCH_ALIGNMENT 512ULL

/* What one allocating call does: `claim` was made where `charged`. */
struct attempt {
    struct claim claim;
    bool charged;
    bool refused;
    int tries;
};

static uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

/* Without limits, or without a context (the driver will say so), nothing is charged. */
static struct attempt begin(const char *what, uint64_t bytes) {
    struct attempt attempt = {0};
    uint8_t uuid[UUID_SIZE];
    if (!charge_is_limited() || !cards_current(uuid)) return attempt;
    attempt.charged = charge_reserve(what, uuid, round_up(bytes, GRANULE), &attempt.claim);
    attempt.refused = !attempt.charged;
    return attempt;
}

/* Whether to call the driver again: a dead process's memory, not yet freed, stood in the way. */
static bool again(struct attempt *attempt, CUresult result) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !attempt->claim.reaped || attempt->tries++ == RETRIES) return false;
    nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    return true;
}

/* Takes the charge back where the driver refused. Out of our own memory, the allocation is undone. */
static CUresult finish(const struct attempt *attempt, CUresult result, const CUdeviceptr *pointer) {
    if (!attempt->charged) return result;
    if (result == CUDA_SUCCESS && charge_remember(*pointer, &attempt->claim)) return result;
    if (result == CUDA_SUCCESS) REAL(cuMemFree_v2)(*pointer);
    charge_release(attempt->claim.card, attempt->claim.bytes);
    return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

/* The body of an allocating function whose first parameter is the pointer's place. */
#define ALLOCATE(name, pointer, bytes, ...)                   \
    do {                                                      \
        struct attempt attempt = begin(#name, bytes);         \
        if (attempt.refused) return CUDA_ERROR_OUT_OF_MEMORY; \
        CUresult result;                                      \
        do result = REAL(name)(pointer, __VA_ARGS__);         \
        while (again(&attempt, result));                      \
        return finish(&attempt, result, pointer);             \
    } while (0)

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    if (!pointer) return REAL(cuMemAlloc_v2)(pointer, bytes);
    ALLOCATE(cuMemAlloc_v2, pointer, bytes, bytes);
}

/* The pitch is the driver's choice, made in the call: charged is the widest. */
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element) {
    if (!pointer) return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    uint64_t row = round_up(width, PITCH_ALIGNMENT);
    uint64_t bytes = height != 0 && row > UINT64_MAX / height ? UINT64_MAX : row * height;
    ALLOCATE(cuMemAllocPitch_v2, pointer, bytes, pitch, width, height, element);
}

/* Managed memory may all come to lie on the card: charged in full. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags) {
    if (!pointer) return REAL(cuMemAllocManaged)(pointer, bytes, flags);
    ALLOCATE(cuMemAllocManaged, pointer, bytes, bytes, flags);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    if (!pointer) return REAL(cuMemAllocAsync)(pointer, bytes, stream);
    ALLOCATE(cuMemAllocAsync, pointer, bytes, bytes, stream);
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    if (!pointer) return REAL(cuMemAllocAsync_ptsz)(pointer, bytes, stream);
    ALLOCATE(cuMemAllocAsync_ptsz, pointer, bytes, bytes, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    if (!pointer) return REAL(cuMemAllocFromPoolAsync)(pointer, bytes, pool, stream);
    ALLOCATE(cuMemAllocFromPoolAsync, pointer, bytes, bytes, pool, stream);
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
    if (!pointer) return REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, bytes, pool, stream);
    ALLOCATE(cuMemAllocFromPoolAsync_ptsz, pointer, bytes, bytes, pool, stream);
}

/* Forgotten before the driver's call, for after it another thread may be given the same pointer. What was never charged
 * goes to the driver as it is. */
#define RELEASE(name, pointer, ...)                                                     \
    do {                                                                                \
        struct claim claim;                                                             \
        bool charged = charge_is_limited() && charge_forget(pointer, &claim);           \
        CUresult result = REAL(name)(__VA_ARGS__);                                      \
        if (charged && result != CUDA_SUCCESS) charge_remember(pointer, &claim);        \
        if (charged && result == CUDA_SUCCESS) charge_release(claim.card, claim.bytes); \
        return result;                                                                  \
    } while (0)

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) { RELEASE(cuMemFree_v2, pointer, pointer); }

EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    RELEASE(cuMemFreeAsync, pointer, pointer, stream);
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
    RELEASE(cuMemFreeAsync_ptsz, pointer, pointer, stream);
}
