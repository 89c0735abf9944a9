/* Physical memory by handle. */
#ifndef SIMGPU_CUDA_VMM_PHYSICAL_H
#define SIMGPU_CUDA_VMM_PHYSICAL_H

#include <cuda.h>
#include <stdint.h>

#include "ledger/shared_memory.h"

struct binding;
struct multicast;

/* Made by cuMemCreate or by an import. Freed once the handle is released and nothing maps or binds it. */
struct physical {
    struct physical *next;
    CUmemAllocationProp properties;
    uint64_t size;
    uint64_t shared_id;           /* once exported, or as imported; 0 = not shared */
    unsigned references;          /* by the program */
    unsigned mappings;            /* to addresses */
    unsigned bindings;            /* to arrays and multicast objects */
    enum attribution attribution; /* of the shared memory; UNATTRIBUTED once only bindings are left */
    struct multicast *multicast;  /* the handle is of a multicast object; NULL = of memory */
};

/* Makes a handle with one reference. NULL when out of memory. */
struct physical *physical_make(const CUmemAllocationProp *properties, uint64_t size, uint64_t shared_id);
struct physical *physical_of(CUmemGenericAllocationHandle handle); /* NULL when there is none */
void physical_add_mapping(struct physical *physical);
void physical_remove_mapping(struct physical *physical);
void physical_add_binding(struct physical *physical);
void physical_remove_binding(struct physical *physical);
/* Removes a binding of a multicast object; `link` then points to the next one. */
void physical_unbind(struct binding **link);

#endif
