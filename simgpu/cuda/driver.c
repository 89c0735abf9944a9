#include "driver.h"

#include "devices.h"
#include "hardware/export.h"
#include "ledger/attach.h"
#include "ledger/faults.h"
#include "ledger/join.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
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

void driver_lock_take(void) { (void)pthread_mutex_lock(&driver_lock); }

void driver_sleep_until(uint64_t ns) {
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)pthread_mutex_unlock(&driver_lock);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    (void)pthread_mutex_lock(&driver_lock);
}

static CUresult initialize(void) {
    CUresult result = initialized ? CUDA_SUCCESS : devices_find();
    if (result == CUDA_SUCCESS && ledger_join() != 0) {
        result = CUDA_ERROR_OPERATING_SYSTEM;
    }
    initialized = initialized || result == CUDA_SUCCESS;
    return result;
}

EXPORTED CUresult cuInit(unsigned int Flags) {
    int injected = fault_injected(__func__);
    if (injected != 0 || Flags != 0) {
        return injected != 0 ? (CUresult)injected : CUDA_ERROR_INVALID_VALUE;
    }
    if (ledger_is_forked()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    (void)pthread_mutex_lock(&driver_lock);
    return driver_leave(initialize());
}

EXPORTED CUresult cuDriverGetVersion(int *driverVersion) {
    int injected = fault_injected(__func__);
    if (injected != 0 || driverVersion == NULL) {
        return injected != 0 ? (CUresult)injected : CUDA_ERROR_INVALID_VALUE;
    }
    *driverVersion = DRIVER_CUDA_VERSION;
    return CUDA_SUCCESS;
}
