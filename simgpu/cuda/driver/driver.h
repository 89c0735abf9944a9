/* How each function of the simulated libcuda begins and ends. One lock of the process guards all of the library. */
#ifndef SIMGPU_CUDA_DRIVER_DRIVER_H
#define SIMGPU_CUDA_DRIVER_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define DRIVER_CUDA_VERSION 13000 /* of a 580 driver; cuda.h may be newer */

/* A function that programs call begins with these two lines, and holds the lock to its end, by whichever way it is
 * left:
 *
 *     HELD_DRIVER const CUresult entered = driver_enter(__func__);
 *     if (entered != CUDA_SUCCESS) return entered;
 *
 * driver_enter returns an injected result; CUDA_ERROR_NOT_INITIALIZED before cuInit and in a child of fork; what
 * driver_state returns; CUDA_SUCCESS, and then the lock is taken. */
#define HELD_DRIVER __attribute__((cleanup(driver_drop)))
CUresult driver_enter(const char *function);

/* Holds the lock to the end of the enclosing block, without the questions of driver_enter: in cuInit, and in a thread
 * of the simulated driver's own. */
#define HOLD_DRIVER() __attribute__((cleanup(driver_drop), unused)) const CUresult held_driver = driver_hold()

/* What calls return from now on: CUDA_SUCCESS; CUDA_ERROR_ILLEGAL_ADDRESS after a fault of a kernel of this process; as
 * a client of an MPS server, CUDA_ERROR_MPS_CLIENT_TERMINATED after a fault of another client, and
 * CUDA_ERROR_MPS_RPC_FAILURE once the server has ended. Under the lock. Calls that wait end with this question. */
CUresult driver_state(void);
/* A kernel has read an address that does not exist. Under the lock. */
void driver_fault(void);

/* Whether cuInit has succeeded. Under the lock. */
bool driver_is_initialized(void);
void driver_set_initialized(void);
/* Releases the lock, sleeps until that time (CLOCK_MONOTONIC, ns) and takes the lock again. */
void driver_sleep_until(uint64_t ns);

/* For the macros above. */
void driver_lock(void);
void driver_unlock(void);

static inline CUresult driver_hold(void) {
    driver_lock();
    return CUDA_SUCCESS;
}

static inline void driver_drop(const CUresult *entered) {
    if (*entered == CUDA_SUCCESS) driver_unlock();
}

#endif
