/* Guard against the destruction of pools, like a readers-writer lock: a thread that asks about a pool which another
 * thread may destroy, such as the current one, enters as a reader; a thread that destroys a pool waits until no reader
 * is inside, and keeps new readers out. Readers stay for one allocating call at most. Not recursive. */
#ifndef VGPU_BOOKS_POOLS_POOL_GUARD_H
#define VGPU_BOOKS_POOLS_POOL_GUARD_H

#include <stdbool.h>

/* Around questions about the current pool, or about a handle that the driver has just returned. pool_guard_enter blocks
 * on LOCK_POOL_GUARD while a pool is being destroyed. */
void pool_guard_enter(void);
void pool_guard_leave(void);

/* Enters as a reader, and stays so to the end of the enclosing block. */
#define HOLD_POOL_GUARD() __attribute__((cleanup(pool_guard_drop), unused)) const bool is_guard_held = pool_guard_hold()

static inline bool pool_guard_hold(void) {
    pool_guard_enter();
    return true;
}

static inline void pool_guard_drop(const bool *held) {
    if (*held) pool_guard_leave();
}

/* Around the destruction of a pool. Holds LOCK_POOL_GUARD in between, across the driver's call, so that readers sleep
 * instead of polling. */
void pool_guard_begin_destroy(void);
void pool_guard_end_destroy(void);

#endif
