/* Threads of this library. They take no signals, so that the program's handlers run in the program's threads. */
#ifndef VGPU_PROCESS_QUIET_THREAD_H
#define VGPU_PROCESS_QUIET_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Starts a detached thread with a stack of `stack_size` bytes (0: as the program's threads). False where there can be
 * none. A true answer is no proof, because another library may stand in for pthread_create: the thread has to tell. */
bool quiet_thread_start(size_t stack_size, void *(*function)(void *), void *argument);

#endif
