/* Declarations that mix.c and mix_steps.c share. */
#ifndef MIX_H
#define MIX_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#include "driver/function_table.h"

#define MIB  (1ULL << 20)
#define KEPT 12

/* Functions that the limiter does not wrap are the driver's own. */
#define DRIVER(name) ((__typeof__(&(name)))dlsym(dlopen("libcuda.so.1", RTLD_NOW), #name))

struct mapped {
    CUdeviceptr address;
    CUmemGenericAllocationHandle physical;
};

struct pooled {
    CUmemoryPool pool;
    CUdeviceptr pointer;
};

struct thread {
    pthread_t id;
    unsigned long long chance;
    CUdeviceptr plain[KEPT], pooled[KEPT];
    CUmemGenericAllocationHandle physical[KEPT];
    struct mapped mapped[KEPT];
    struct pooled pools[KEPT];
    CUarray array[KEPT];
    CUmodule module[KEPT];
    CUstream stream[KEPT];
};

extern CUcontext context; /* current in every thread */
extern nvmlDevice_t card;
extern int wrong; /* atomic; the exit code */

/* A number below `most`. */
unsigned next(struct thread *thread, unsigned most);

/* Any result but success and out of memory is an error. */
void expect(const char *what, CUresult result);

/* One call or a few, of any kind. */
void step(struct thread *thread);

/* An array made or destroyed; memory taken from the current pool, that pool changed, or one shared; launches, in streams
 * and contexts that come and go. */
void array_step(struct thread *thread);
void pool_step(struct thread *thread);
void launch_step(struct thread *thread);

void free_all(struct thread *thread);

#endif
