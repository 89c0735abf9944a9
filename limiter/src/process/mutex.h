/* A lock among the threads of this process: a futex, because pthread_mutex_lock() may be another library's, which the
 * program loads before this one. A zeroed mutex is free. */
#ifndef VGPU_PROCESS_MUTEX_H
#define VGPU_PROCESS_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

struct mutex {
    uint32_t state; /* atomic, futex word: 0 = free, 1 = held, 2 = held, and threads may wait */
};

/* Blocks until the calling thread holds the mutex. */
void mutex_lock(struct mutex *mutex);

/* Takes the mutex if it is free; does not wait. */
bool mutex_try_lock(struct mutex *mutex);

void mutex_unlock(struct mutex *mutex);

#endif
