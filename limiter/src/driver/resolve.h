/* Wrappers of the functions by which a program looks up driver functions: dlsym, dlvsym, cuGetProcAddress. */
#ifndef VGPU_DRIVER_RESOLVE_H
#define VGPU_DRIVER_RESOLVE_H

/* This library's `dlsym` or `dlvsym`. */
void *resolve_own(const char *name);

#endif
