/* The loading of kernels. With CUDA's lazy loading, the default, the driver loads a kernel's code when it is first
 * launched: 0.6 to 3 ms for small ones, seconds where a library is read from a disk. That is time of the host's and not
 * of the card's, and between the events that measure a launch it could not be told from the kernel's time. */
#ifndef VGPU_DRIVER_KERNEL_LOADING_H
#define VGPU_DRIVER_KERNEL_LOADING_H

#include "driver/abi.h"

/* Loads the kernel into the current context, unless this was done before. A CUkernel may be passed as a CUfunction.
 * Called before its launch has a turn. A kernel that the driver cannot load is left to the launch to report. The caller
 * holds no lock. */
void kernel_loading_ensure(CUfunction function);

/* Forgets what was loaded. Call before functions are unloaded: a new one may get an old address. */
void kernel_loading_forget_all(void);

#endif
