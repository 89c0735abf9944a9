/* A set of driver handles of fixed size, without probing and without locks: a handle replaces another with the same
 * hash, which is then no longer in the set. */
#ifndef VGPU_DRIVER_HANDLE_SET_H
#define VGPU_DRIVER_HANDLE_SET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum { HANDLE_SET_SLOTS = 4096 };

struct handle_set {
    uintptr_t slots[HANDLE_SET_SLOTS]; /* 0 = empty; relaxed atomic */
};

static inline uintptr_t *handle_set_slot(struct handle_set *set, uintptr_t handle) {
    static_assert(HANDLE_SET_SLOTS == 1 << 12, "the hash has 12 bits");
    return &set->slots[(uint64_t)handle * 0x9e3779b97f4a7c15ULL >> 52];
}

static inline bool handle_set_has(struct handle_set *set, uintptr_t handle) {
    return __atomic_load_n(handle_set_slot(set, handle), __ATOMIC_RELAXED) == handle;
}

static inline void handle_set_add(struct handle_set *set, uintptr_t handle) {
    __atomic_store_n(handle_set_slot(set, handle), handle, __ATOMIC_RELAXED);
}

static inline void handle_set_empty(struct handle_set *set) {
    for (int i = 0; i < HANDLE_SET_SLOTS; i++) __atomic_store_n(&set->slots[i], 0, __ATOMIC_RELAXED);
}

#endif
