#include "cuda/driver/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

#include "ledger/attach.h"
#include "ledger/faults.h"
#include "ledger/mps_servers.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_initialized;
static bool has_faulted;

void driver_lock(void) { pthread_mutex_lock(&lock); }

void driver_unlock(void) { pthread_mutex_unlock(&lock); }

CUresult driver_enter(const char *function) {
    int injected = fault_awaited(function, NULL);
    if (injected != 0) return (CUresult)injected;
    if (ledger_is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
    driver_lock();
    CUresult result = is_initialized ? driver_state() : CUDA_ERROR_NOT_INITIALIZED;
    if (result != CUDA_SUCCESS) driver_unlock();
    return result;
}

CUresult driver_state(void) {
    if (has_faulted) return CUDA_ERROR_ILLEGAL_ADDRESS;
    switch (mps_client_state()) {
        case MPS_FAULTED: /* whichever client the faulty kernel was of (measured on an H200, driver 580) */
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        case MPS_ENDED:
            return CUDA_ERROR_MPS_RPC_FAILURE;
        default:
            return CUDA_SUCCESS;
    }
}

void driver_fault(void) {
    has_faulted = true;
    mps_client_fault();
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
