/* Fills the table of charge/reserve/memory_class.h: charge/ must not include hooks/, where the classes are implemented.
 */
#include "charge/reserve/memory_class.h"

#include <stddef.h>

#include "charge/measure/context_limits.h"
#include "charge/measure/nvml_probe.h"
#include "hooks/graphs/graph_memory.h"
#include "hooks/memory/physical_charge.h"
#include "hooks/pools/pool_charge.h"
#include "hooks/programs/queued_frees.h"

const struct memory_class *const memory_classes[] = {
    &queued_frees_class,
    &physical_memory_class,
    &pool_memory_class,
    &graph_memory_class,
    &context_limits_class,
    &nvml_probe_class,
    NULL,
};
