#include "process/quiet_thread.h"

#include "common/system_calls.h"
#include "loader/libc.h"

/* All signals but 32 to 34, which C libraries send to threads for their own purposes, such as setuid(). */
#define ALL_SIGNALS (~(UINT64_C(7) << 31))

/* Sanitizers have to see a thread begin, so pthread_create is called by its name. */
static bool start(pthread_attr_t *attributes, size_t stack_size, void *(*function)(void *), void *argument) {
    pthread_t thread;
    LIBC(pthread_attr_setdetachstate)(attributes, PTHREAD_CREATE_DETACHED);
    if (stack_size) LIBC(pthread_attr_setstacksize)(attributes, stack_size);
    uint64_t before = system_set_signal_mask(ALL_SIGNALS);
    bool is_started = pthread_create(&thread, attributes, function, argument) == 0;
    system_set_signal_mask(before);
    return is_started;
}

bool quiet_thread_start(size_t stack_size, void *(*function)(void *), void *argument) {
    pthread_attr_t attributes;
    LIBC(pthread_attr_init)(&attributes);
    bool is_started = start(&attributes, stack_size, function, argument);
    LIBC(pthread_attr_destroy)(&attributes);
    return is_started;
}
