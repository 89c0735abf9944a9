/* Classes of allocation: each allocates and frees memory of a card in one way. */
#ifndef BENCH_CLASSES_H
#define BENCH_CLASSES_H

#include "calls.h"

/* Memory that one `take` allocated; each class uses the fields it needs. */
struct holding {
    const struct class *class;
    size_t bytes;
    CUdeviceptr pointer;
    CUmemGenericAllocationHandle handle;
    void *object; /* an array of arrays, a mipmapped array, a module, a context, host memory */
    size_t count; /* number of arrays */
    CUgraph graph;
    CUgraphExec executable;
};

/* `take` frees everything when it fails; `give` frees what it can. `failure` has the call that failed. */
struct class {
    const char *name;
    bool (*take)(struct holding *);
    void (*give)(struct holding *);
};

/* The classes of each file; the last entry has no name. */
extern const struct class linear_classes[];
extern const struct class pool_classes[];
extern const struct class vmm_classes[];
extern const struct class array_classes[];
extern const struct class graph_classes[];
extern const struct class module_classes[];
extern const struct class context_classes[];
extern const struct class sharing_classes[];
extern const struct class external_classes[];
extern const struct class green_classes[];

/* NULL when no class has that name. */
const struct class *find_class(const char *name);
/* Calls the function for every class. */
void each_class(void (*call)(const struct class *));

#endif
