/* Mutexes of a process that are held to the end of a block. */
#ifndef SIMGPU_HARDWARE_MUTEX_H
#define SIMGPU_HARDWARE_MUTEX_H

#include <pthread.h>

/* Takes a mutex and holds it to the end of the enclosing block, by whichever way that is left. */
#define HOLD_MUTEX(name) \
    __attribute__((cleanup(mutex_drop), unused)) pthread_mutex_t *const held_##name = mutex_hold(&(name))

static inline pthread_mutex_t *mutex_hold(pthread_mutex_t *mutex) {
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void mutex_drop(pthread_mutex_t *const *held) { pthread_mutex_unlock(*held); }

#endif
