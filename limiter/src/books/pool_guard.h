/* Threads that ask about a pool which is not their own: the current one, which its owner may change and destroy at any
 * moment. While any does, none is destroyed; each is about it for no longer than a call that allocates. Not nested. */
#ifndef VGPU_BOOKS_POOL_GUARD_H
#define VGPU_BOOKS_POOL_GUARD_H

/* Around questions about whatever pool is current, or about a handle that was just got from the driver. */
void pool_guard_enter(void);
void pool_guard_leave(void);

/* Around a pool's end: waits until nobody is in between those. */
void pool_guard_begin_destroy(void);
void pool_guard_end_destroy(void);

#endif
