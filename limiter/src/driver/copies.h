/* Second copies of NVIDIA's driver, or of NVML, in a process, such as one that a forward-compatibility package has
 * opened by its path after the system's. The limits, the books and the launch gate know one driver. So a program that
 * looks up a function in another copy gets the function of the copy that was loaded first. */
#ifndef VGPU_DRIVER_COPIES_H
#define VGPU_DRIVER_COPIES_H

/* What a lookup of `name` answers that has found `address`: where the address lies in a second copy, the function of
 * the first copy, or NULL where that lacks the function (dlerror() says so); else `address`. */
void *copies_redirect(const char *name, void *address);

#endif
