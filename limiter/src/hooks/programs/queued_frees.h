/* Memory that is freed in stream order behind a closed wait (ADR 35) is still reserved. Before an allocation is
 * refused, the waits are opened and their work drains. */
#ifndef VGPU_HOOKS_PROGRAMS_QUEUED_FREES_H
#define VGPU_HOOKS_PROGRAMS_QUEUED_FREES_H

#include "charge/reserve/memory_class.h"

/* Its `trim` comes before those that give idle memory back to the driver. */
extern const struct memory_class queued_frees_class;

#endif
