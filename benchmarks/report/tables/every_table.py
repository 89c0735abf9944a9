"""All tables, in the order in which a result's figures are looked for."""

from typing import Final

from benchmarks.report.tables.card_jobs import BESIDE_JOBS, FRAMEWORK_JOBS
from benchmarks.report.tables.comparison import COMPARISON
from benchmarks.report.tables.control_plane import (
    ADMIN_LOAD,
    CHURN,
    FILTER_LATENCY,
    HISTORY,
    HISTORY_FAULTS,
    PAGE_SPEED,
    SCHEDULE,
)
from benchmarks.report.tables.faults import (
    OUTAGES,
    RECOVERY,
)
from benchmarks.report.tables.limiter import (
    ARBITER,
    COMPILING,
    COMPUTE,
    COSTS,
    CROWDS,
    HANDOVER,
    HEADLINE,
    HEADLINE_COSTS,
    JOBS,
    JOBS_BESIDE,
    LEAKS,
    LONG,
    PROGRAMS,
    SMALL_PROGRAMS,
    TORCH_STEP,
    WAITING,
)
from benchmarks.report.tables.packing import (
    PACKING,
    PACKING_STEADY,
    PACKING_VERBS,
    PACKING_VERBS_STEADY,
)
from benchmarks.report.tables.pods import (
    IN_PODS,
)
from benchmarks.report.tables.space import (
    SPACE_COMPARISON,
    SPACE_CROWDS,
    SPACE_FAULTS,
    SPACE_GUIDE,
    SPACE_MEMORY,
)
from benchmarks.report.tables.workloads import (
    ACCOUNTING,
    CURES,
    DIAGNOSIS,
    ESTIMATE,
    HOLD,
)

TABLES: Final = (
    IN_PODS,
    OUTAGES,
    RECOVERY,
    HEADLINE,
    HEADLINE_COSTS,
    COMPARISON,
    LEAKS,
    COSTS,
    TORCH_STEP,
    COMPUTE,
    PROGRAMS,
    COMPILING,
    WAITING,
    LONG,
    HANDOVER,
    CROWDS,
    SMALL_PROGRAMS,
    SPACE_MEMORY,
    SPACE_CROWDS,
    SPACE_FAULTS,
    SPACE_GUIDE,
    SPACE_COMPARISON,
    JOBS,
    JOBS_BESIDE,
    FRAMEWORK_JOBS,
    BESIDE_JOBS,
    ARBITER,
    SCHEDULE,
    CHURN,
    HISTORY,
    FILTER_LATENCY,
    HISTORY_FAULTS,
    ADMIN_LOAD,
    PAGE_SPEED,
    PACKING,
    PACKING_STEADY,
    ACCOUNTING,
    HOLD,
    DIAGNOSIS,
    CURES,
    ESTIMATE,
    PACKING_VERBS,
    PACKING_VERBS_STEADY,
)
