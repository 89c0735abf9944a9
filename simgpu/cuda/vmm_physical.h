/* Physical memory by handle, shared by the files that map it, share it or bind it. */
#ifndef CUDA_PHYSICAL_H
#define CUDA_PHYSICAL_H

#include "driver.h"

typedef struct Multicast Multicast;

/* The card's from cuMemCreate, or from an import, until the handle is released and nothing maps or holds it. */
typedef struct Physical {
    struct Physical *next;
    CUmemAllocationProp properties;
    uint64_t size;
    uint64_t share;       /* its number once it was exported, or as it was imported; 0 = none */
    unsigned references;  /* of the program */
    unsigned mappings;    /* to addresses */
    unsigned holds;       /* of arrays and multicast objects */
    SimSight sight;       /* of its share; UNSEEN once it is held by such alone */
    Multicast *multicast; /* no memory, but a multicast object; NULL for memory */
} Physical;

/* Made with one reference; NULL without memory. */
Physical *physical_make(const CUmemAllocationProp *properties, uint64_t size, uint64_t share);
Physical *physical_of(CUmemGenericAllocationHandle handle); /* NULL when there is none */
void physical_add_mapping(Physical *physical);
void physical_release_mapping(Physical *physical);
void physical_hold(Physical *physical);
void physical_let_go(Physical *physical);
/* That which all of the range is mapped to by one mapping, NULL when there is none. */
Physical *physical_mapped(CUdeviceptr address, uint64_t size);
void multicast_free(Multicast *multicast);

#endif
