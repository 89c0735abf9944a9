/* Threads of this library. They take no signals, so that the program's handlers run in the program's threads. */
#ifndef VGPU_PROCESS_QUIET_THREAD_H
#define VGPU_PROCESS_QUIET_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Like pthread_create; false where there can be no thread. */
bool quiet_thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);

#endif
