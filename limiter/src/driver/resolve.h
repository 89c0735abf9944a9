/* The ways by which a program finds driver functions: dlsym, dlvsym, cuGetProcAddress. */
#ifndef VGPU_DRIVER_RESOLVE_H
#define VGPU_DRIVER_RESOLVE_H

/* The C library's own dlsym. */
void *resolve_real_dlsym(void *handle, const char *name);

#endif
