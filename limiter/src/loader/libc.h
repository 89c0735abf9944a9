/* Functions of the C library that are found in the C library's own table of symbols. A function that is called by its
 * name instead may be another library's, which the program loads before this one; and this library exports functions of
 * some of these names itself (driver/resolve.c, driver/loading.c). */
#ifndef VGPU_LOADER_LIBC_H
#define VGPU_LOADER_LIBC_H

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>

/* clang-format off */
#define LIBC_FUNCTIONS(F) \
    F(dlsym) F(dlvsym) F(dlopen) F(dlmopen) F(dlclose) F(dlinfo) F(dladdr) F(dl_iterate_phdr) F(getauxval) \
    F(pthread_atfork) F(pthread_setcancelstate) F(pthread_attr_init) F(pthread_attr_destroy) \
    F(pthread_attr_setdetachstate) F(pthread_attr_setstacksize) F(pthread_mutexattr_init) \
    F(pthread_mutexattr_destroy) F(pthread_mutexattr_setpshared) F(pthread_mutexattr_setrobust) \
    F(pthread_mutex_init) F(pthread_mutex_destroy) F(pthread_mutex_trylock) F(pthread_mutex_unlock) \
    F(pthread_mutex_consistent)
/* clang-format on */

#define LIBC_NUMBER(name) LIBC_##name,
enum libc_function { LIBC_FUNCTIONS(LIBC_NUMBER) LIBC_COUNT };

/* The C library's function `name`, to be called; it must be in LIBC_FUNCTIONS. Under ThreadSanitizer the function of
 * that name, because that runtime has to see locks and threads. */
#if defined(__SANITIZE_THREAD__)
#define LIBC(name) (&(name))
#else
#define LIBC(name) ((__typeof__(&(name)))libc_function(LIBC_##name))
#endif

/* The address behind LIBC; NULL where the C library lacks the function: musl has no dlvsym and no dlmopen. */
void *libc_function(enum libc_function function);

#endif
