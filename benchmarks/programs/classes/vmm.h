/* Memory by handle, for the files that map it, share it, or put arrays on it. */
#ifndef BENCH_VMM_H
#define BENCH_VMM_H

#include "classes.h"

/* Sets `handle`, for memory of device 0 of which a file descriptor can be made. */
bool vmm_create(struct holding *held);

/* Maps the handle at a new address, which it sets; and undoes that. */
bool vmm_map(struct holding *held);
void vmm_unmap(struct holding *held);

#endif
