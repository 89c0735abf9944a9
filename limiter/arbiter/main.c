/* vgpu-arbiter: gives turns on this machine's cards to the containers whose directories lie below DIRECTORY, until
 * SIGTERM or SIGINT. One thread; waits only in event_loop_wait. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "arbiter/connection/event_loop.h"
#include "arbiter/container/card_board.h"
#include "arbiter/container/containers.h"
#include "arbiter/container/jobs.h"
#include "arbiter/options.h"
#include "arbiter/process_priority.h"
#include "arbiter/watermark/watermark_config.h"
#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/log.h"

/* How often directories, limits and the configuration are read. */
#define REFRESH_INTERVAL (NS_PER_SECOND / 2)

static bool is_stopping;

static void on_signal(struct event_source *signals) {
    struct signalfd_siginfo info;
    if (read(signals->fd, &info, sizeof info) <= 0) return;
    if (info.ssi_signo == SIGXCPU)
        process_priority_lower();
    else
        is_stopping = true;
}

static bool watch_signals(void) {
    static struct event_source signals = {.ready = on_signal};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGXCPU);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return signals.fd >= 0 && event_loop_add(&signals);
}

/* The end of the parent is SIGTERM to this process. If it ended before prctl, getppid names another process. */
static bool end_with_parent(pid_t parent) { return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent; }

/* Each connection takes a descriptor. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void refresh(const struct options *options, uint64_t now) {
    containers_refresh(now);
    card_boards_log_turns();
    if (options->config && watermark_config_read(options->config)) card_boards_set_watermarks();
}

/* Whether there was no container for the time of --idle-exit. */
static bool is_idle_exit_due(const struct options *options, uint64_t now) {
    static uint64_t last_used_at;
    if (containers_count() > 0 || last_used_at == 0) last_used_at = now;
    return options->idle_exit_ns && now >= last_used_at + options->idle_exit_ns;
}

/* What jobs do depends on the turns of their cards, and these on the jobs. */
static uint64_t run(uint64_t now) {
    uint64_t next_run_at = card_boards_run(now);
    if (jobs_run(now)) next_run_at = card_boards_run(now);
    return min_u64(next_run_at, jobs_look_at(now));
}

static void serve(const struct options *options) {
    uint64_t refresh_at = 0, next_run_at = 0;
    while (!is_stopping) {
        event_loop_wait(next_run_at < refresh_at ? next_run_at : refresh_at);
        uint64_t now = clock_now();
        containers_rescan_if_changed();
        if (now >= refresh_at) {
            refresh(options, now);
            refresh_at = now + REFRESH_INTERVAL;
            is_stopping |= is_idle_exit_due(options, now);
        }
        next_run_at = run(clock_now());
    }
}

int main(int count, char **arguments) {
    struct options options;
    clock_use_vdso(getauxval(AT_SYSINFO_EHDR));
    if (!options_read(count, arguments, &options)) return EXIT_FAILURE;
    if (options.parent && !end_with_parent(options.parent)) return EXIT_FAILURE;
    raise_descriptor_limit();
    process_priority_raise();
    if (!event_loop_open() || !watch_signals()) {
        perror("vgpu-arbiter: cannot wait for events and signals");
        return EXIT_FAILURE;
    }
    if (!containers_open(options.allocations)) {
        (void)fprintf(stderr, "vgpu-arbiter: %s: %s\n", options.allocations, strerror(errno));
        return EXIT_FAILURE;
    }
    serve(&options);
    containers_close();
    return EXIT_SUCCESS;
}
