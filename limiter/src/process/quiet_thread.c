#include "process/quiet_thread.h"

#include <signal.h>

bool quiet_thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                        void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = pthread_create(thread, attributes, function, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_started;
}
