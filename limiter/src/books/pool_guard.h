/* Threads that ask about a pool which is not their own: the current one, which its owner may change and destroy at any
 * moment. While any does, none is destroyed; each is about it for no longer than a call that allocates. Not nested. */
#ifndef VGPU_POOL_USERS_H
#define VGPU_POOL_USERS_H

/* Around questions about whatever pool is current, or about a handle that was just got from the driver. */
void pool_users_enter(void);
void pool_users_leave(void);

/* Around a pool's end: waits until nobody is in between those. */
void pool_users_shut_out(void);
void pool_users_let_in(void);

/* Around a fork, before all other locks; and in the child, which has no other threads. */
void pool_users_lock(void);
void pool_users_unlock(void);
void pool_users_forget(void);

#endif
