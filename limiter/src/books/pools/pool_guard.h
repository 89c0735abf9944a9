/* Guard against the destruction of pools, like a readers-writer lock: a thread that asks about a pool which another
 * thread may destroy, such as the current one, enters as a reader; a thread that destroys a pool waits until no reader
 * is inside, and keeps new readers out. Readers stay for one allocating call at most. Not recursive. */
#ifndef VGPU_BOOKS_POOLS_POOL_GUARD_H
#define VGPU_BOOKS_POOLS_POOL_GUARD_H

/* Around questions about the current pool, or about a handle that the driver has just returned. pool_guard_enter blocks
 * on LOCK_POOL_GUARD while a pool is being destroyed. */
void pool_guard_enter(void);
void pool_guard_leave(void);

/* Around the destruction of a pool. Holds LOCK_POOL_GUARD in between, across the driver's call, so that readers sleep
 * instead of polling. */
void pool_guard_begin_destroy(void);
void pool_guard_end_destroy(void);

#endif
