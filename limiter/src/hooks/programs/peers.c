/* Wrappers of access to the memory of other devices. A program that enables it joins their cards: kernels on one of
 * them may wait for kernels on the other (compute/link/linked_turn.h). */
#include "compute/link/linked_turn.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "process/fork.h"

static uint32_t enabled; /* atomic; times that access was enabled, and not disabled */

static void forget(void) { enabled = 0; }
FORGET_IN_CHILD(forget);

static bool find_card(CUcontext context, uint8_t uuid[UUID_SIZE]) {
    CUcontext popped;
    if (REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS) return false;
    bool is_found = cards_current(uuid);
    REAL(cuCtxPopCurrent_v2)(&popped);
    return is_found;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    uint8_t own[UUID_SIZE], other[UUID_SIZE];
    CUresult result = REAL(cuCtxEnablePeerAccess)(peer, flags);
    if (result != CUDA_SUCCESS || !container_is_limited()) return result;
    __atomic_fetch_add(&enabled, 1, __ATOMIC_RELAXED);
    if (cards_current(own) && find_card(peer, other)) linked_turn_join(own, other);
    return result;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    CUresult result = REAL(cuCtxDisablePeerAccess)(peer);
    bool is_counted = result == CUDA_SUCCESS && __atomic_load_n(&enabled, __ATOMIC_RELAXED) != 0;
    if (is_counted && __atomic_sub_fetch(&enabled, 1, __ATOMIC_RELAXED) == 0) linked_turn_part();
    return result;
}
