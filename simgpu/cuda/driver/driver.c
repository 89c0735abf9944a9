#include "cuda/driver/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

#include "ledger/attach.h"
#include "ledger/faults.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_initialized;

void driver_lock(void) { pthread_mutex_lock(&lock); }

void driver_unlock(void) { pthread_mutex_unlock(&lock); }

CUresult driver_enter(const char *function) {
    int injected = fault_awaited(function, NULL);
    if (injected != 0) return (CUresult)injected;
    if (ledger_is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    if (is_initialized) return CUDA_SUCCESS;
    driver_unlock();
    return CUDA_ERROR_NOT_INITIALIZED;
}

bool driver_is_initialized(void) { return is_initialized; }

void driver_set_initialized(void) { is_initialized = true; }

void driver_sleep_until(uint64_t ns) {
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    driver_unlock();
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    driver_lock();
}
