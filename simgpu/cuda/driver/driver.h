/* How each function of the simulated libcuda begins and ends. One lock of the process guards all of the library. */
#ifndef SIMGPU_CUDA_DRIVER_DRIVER_H
#define SIMGPU_CUDA_DRIVER_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define DRIVER_CUDA_VERSION 13000 /* of a 580 driver; cuda.h may be newer */

/* Begins a function that programs call. Returns an injected result; CUDA_ERROR_NOT_INITIALIZED before cuInit and in a
 * child of fork; CUDA_SUCCESS, and then the lock is taken. */
CUresult driver_enter(const char *function);
/* Releases the lock and returns `result`. */
CUresult driver_leave(CUresult result);
/* Whether cuInit has succeeded. Under the lock. */
bool driver_is_initialized(void);
void driver_set_initialized(void);
/* Takes the lock without the questions of driver_enter: in cuInit, and in a thread of the simulated driver's own;
 * driver_leave releases it. */
void driver_lock_take(void);
/* Releases the lock, sleeps until that time (CLOCK_MONOTONIC, ns) and takes the lock again. */
void driver_sleep_until(uint64_t ns);

/* A function that programs call begins with ENTER and ends with LEAVE or REQUIRE. In a static function that such a
 * function returns, they mean the same. */
#define ENTER()                                     \
    do {                                            \
        CUresult entered_ = driver_enter(__func__); \
        if (entered_ != CUDA_SUCCESS) {             \
            return entered_;                        \
        }                                           \
    } while (0)
#define LEAVE(result) return driver_leave(result)
#define REQUIRE(condition, error)       \
    do {                                \
        if (!(condition)) {             \
            return driver_leave(error); \
        }                               \
    } while (0)

#endif
