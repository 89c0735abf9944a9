/* Wrappers of access to the memory of other devices. A program that enables it joins their cards: kernels on one of
 * them may wait for kernels on the other (compute/link/linked_turn.h). */
#include <string.h>

#include "books/physical/physical_memory.h"
#include "books/pools/current_pools.h"
#include "books/pools/pool_guard.h"
#include "compute/link/linked_turn.h"
#include "container/container.h"
#include "driver/cards.h"
#include "driver/function_table.h"
#include "process/fork.h"
#include "region/region.h"

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

/* NCCL maps the memory of other ranks so, in processes of their own too. Access to it is rarely taken back, so the
 * cards stay joined until the process ends. */
static void link_accessed(const uint8_t owner[UUID_SIZE], const CUmemAccessDesc *access) {
    uint8_t uuid[UUID_SIZE];
    bool is_device = access->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (!is_device || access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || !cards_of_device(access->location.id, uuid))
        return;
    if (memcmp(uuid, owner, UUID_SIZE) != 0) linked_turn_join(uuid, owner);
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count) {
    CUresult result = REAL(cuMemSetAccess)(address, size, access, count);
    if (result != CUDA_SUCCESS || !container_is_limited()) return result;
    int card = physical_memory_card_at(address);
    if (card < 0 || card >= REGION_CARDS) return result;
    for (size_t i = 0; i < count; i++) link_accessed(container_region()->cards[card].uuid, &access[i]);
    return result;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count) {
    if (!container_is_limited()) return REAL(cuMemPoolSetAccess)(pool, access, count);
    HOLD_POOL_GUARD();
    CUresult result = REAL(cuMemPoolSetAccess)(pool, access, count);
    const struct pool *accessed = result == CUDA_SUCCESS ? current_pools_find(pool) : NULL;
    for (size_t i = 0; accessed && i < count; i++) link_accessed(accessed->uuid, &access[i]);
    return result;
}
