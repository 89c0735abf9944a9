#include "arbiter/process_priority.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "common/log.h"

/* CPU_BURST_MAX_US: processor time without a pause after which the kernel sends SIGXCPU (RLIMIT_RTTIME). */
enum { NICE_HIGHEST = -20, CPU_BURST_MAX_US = 200000 };

static void set_highest_nice(void) {
    if (setpriority(PRIO_PROCESS, 0, NICE_HIGHEST) != 0)
        log_debug("the arbiter keeps its usual scheduling priority: cannot set nice -20: %s", strerror(errno));
}

void process_priority_raise(void) {
    struct rlimit burst = {.rlim_cur = CPU_BURST_MAX_US, .rlim_max = RLIM_INFINITY};
    struct sched_param parameters = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    bool is_bounded = setrlimit(RLIMIT_RTTIME, &burst) == 0;
    if (!is_bounded || sched_setscheduler(0, SCHED_RR, &parameters) != 0) set_highest_nice();
}

void process_priority_lower(void) {
    struct sched_param parameters = {0};
    if (sched_setscheduler(0, SCHED_OTHER, &parameters) != 0) return;
    log_warn("the arbiter used the processor for 0.2 s without a pause, and continues without real-time priority");
    set_highest_nice();
}
