/* Modules and their functions. */
#ifndef SIMGPU_CUDA_MODULE_MODULE_H
#define SIMGPU_CUDA_MODULE_MODULE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* A function of a module, or a kernel of a library; a program can launch both. */
struct CUfunc_st {
    struct CUfunc_st *next;
    CUlibrary library; /* of a kernel; NULL for a function of a module */
    uint64_t duration_ns;
    uint64_t iteration_ns; /* of a kernel with a number of iterations; 0 for other kernels */
    uint64_t loading_ns;   /* of the host's, by which it is not loaded yet */
    uint64_t warming_ns;   /* of more work in the next launch */
    CUfunction kernel;     /* of a library, whose function in a context this is; NULL for other functions */
    uint64_t local;        /* bytes of local memory per thread */
    bool uses_heap;        /* calls malloc */
    char name[128];
};

struct CUmod_st {
    struct CUmod_st *next;
    CUcontext context;
    CUlibrary library; /* NULL when the program loaded the module itself */
    uint64_t charged;
    bool uses_heap; /* its text names malloc */
    struct CUfunc_st *functions;
};

CUresult module_load(CUmodule *out, CUlibrary library);   /* into the current context */
CUmodule module_of(CUlibrary library, CUcontext context); /* NULL when the library is not loaded there */
void modules_unload_of(CUlibrary library);
void modules_free_of(CUcontext context);

/* The function of that name, added to the list when it is new. NULL when out of memory. */
CUfunction function_named(CUfunction *list, const char *name);
void functions_free(CUfunction *list);

/* Loads its code, which keeps the host, unless that was done before. */
void function_load(CUfunction function);

#endif
