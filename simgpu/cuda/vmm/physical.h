/* Physical memory by handle. */
#ifndef SIMGPU_CUDA_VMM_PHYSICAL_H
#define SIMGPU_CUDA_VMM_PHYSICAL_H

#include "ledger/shared_memory.h"

#include <cuda.h>
#include <stdint.h>

struct Binding;
struct Multicast;

/* Made by cuMemCreate or by an import. Freed once the handle is released and nothing maps or binds it. */
typedef struct Physical {
    struct Physical *next;
    CUmemAllocationProp properties;
    uint64_t size;
    uint64_t shared_id;          /* once exported, or as imported; 0 = not shared */
    unsigned references;         /* by the program */
    unsigned mappings;           /* to addresses */
    unsigned bindings;           /* to arrays and multicast objects */
    Attribution attribution;     /* of the shared memory; UNATTRIBUTED once only bindings are left */
    struct Multicast *multicast; /* the handle is of a multicast object; NULL = of memory */
} Physical;

/* Makes a handle with one reference. NULL when out of memory. */
Physical *physical_make(const CUmemAllocationProp *properties, uint64_t size, uint64_t shared_id);
Physical *physical_of(CUmemGenericAllocationHandle handle); /* NULL when there is none */
void physical_add_mapping(Physical *physical);
void physical_remove_mapping(Physical *physical);
void physical_add_binding(Physical *physical);
void physical_remove_binding(Physical *physical);
/* Removes a binding of a multicast object; `link` then points to the next one. */
void physical_unbind(struct Binding **link);

#endif
