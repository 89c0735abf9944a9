#include "cuda/driver/driver.h"

#include "ledger/attach.h"
#include "ledger/faults.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized;

CUresult driver_enter(const char *function) {
    int injected = fault_awaited(function, NULL);
    if (injected != 0) {
        return (CUresult)injected;
    }
    if (ledger_is_forked()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    (void)pthread_mutex_lock(&driver_lock);
    return initialized ? CUDA_SUCCESS : driver_leave(CUDA_ERROR_NOT_INITIALIZED);
}

CUresult driver_leave(CUresult result) {
    (void)pthread_mutex_unlock(&driver_lock);
    return result;
}

bool driver_is_initialized(void) { return initialized; }

void driver_set_initialized(void) { initialized = true; }

void driver_lock_take(void) { (void)pthread_mutex_lock(&driver_lock); }

void driver_sleep_until(uint64_t ns) {
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)pthread_mutex_unlock(&driver_lock);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    (void)pthread_mutex_lock(&driver_lock);
}
