/* Every way to take memory of a card: one class each, which takes so many bytes and gives them back. */
#ifndef BENCH_CLASSES_H
#define BENCH_CLASSES_H

#include "calls.h"

/* What one `take` got: each class uses the fields it needs. */
struct holding {
    const struct class *class;
    size_t bytes;
    CUdeviceptr pointer;
    CUmemGenericAllocationHandle handle;
    void *object; /* an array of arrays, a mipmapped array, a module, a context, host memory */
    size_t count; /* of the arrays */
    CUgraph graph;
    CUgraphExec executable;
};

/* `take` leaves nothing behind when it fails; `give` gives back what it can. What failed stands in `failure`. */
struct class {
    const char *name;
    bool (*take)(struct holding *);
    void (*give)(struct holding *);
};

/* Each file's classes, ended by one without a name. */
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

/* By name, NULL where there is none; and all of them in turn. */
const struct class *find_class(const char *name);
void each_class(void (*call)(const struct class *));

#endif
