/* The C library's own dlsym and dlvsym: this library exports functions of these names (driver/resolve.c). */
#ifndef VGPU_DRIVER_REAL_LOOKUP_H
#define VGPU_DRIVER_REAL_LOOKUP_H

typedef void *(*dlsym_function)(void *, const char *);
typedef void *(*dlvsym_function)(void *, const char *, const char *);

dlsym_function real_lookup_dlsym(void);

/* NULL in programs that are linked with musl: musl has no dlvsym, and such programs do not call it. */
dlvsym_function real_lookup_dlvsym(void);

#endif
