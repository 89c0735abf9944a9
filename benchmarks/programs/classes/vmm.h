/* Memory by handle. */
#ifndef BENCH_VMM_H
#define BENCH_VMM_H

#include "classes.h"

/* Sets `handle` to exportable memory of device 0. */
bool vmm_create(struct holding *held);

/* Maps the handle to a new address, and sets `pointer`. */
bool vmm_map(struct holding *held);
void vmm_unmap(struct holding *held);

#endif
