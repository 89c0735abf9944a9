/* Requests of a small program, one after the other: each is a number of short kernels and a wait for their end.
 *
 *   requests LAUNCHES US HOST_US REST_US SECONDS [FIRST_US...]
 *
 * A kernel takes US, and the host works for HOST_US before it launches the next one, and sleeps for REST_US after each
 * request. Kernels of FIRST_US each come before the first request, as those of a program that starts. Prints {"ready":...}, waits for a line with a begin time
 * (CLOCK_MONOTONIC, ns), works from then on and until SECONDS after it, and prints {"warm":...,"ends_us":[...],
 * "times_us":[...]}: how many requests ended before the begin time, and when each later one ended after it, and how long
 * it took. A request that begins before the end of the time counts, however long it takes. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kernels.h"

enum { MOST = 1 << 18, MOST_FIRST = 8, US = 1000 };

static struct {
    struct kernel kernel, first[MOST_FIRST];
    int launches, firsts;
    uint64_t host_ns, from, until;
    useconds_t rest_us;
    long ends_us[MOST], times_us[MOST];
    unsigned count, warm;
} work;

static bool prepare(unsigned us, char **first) {
    for (int i = 0; i < work.firsts; i++)
        if (!kernel_work(&work.first[i], (unsigned)strtoul(first[i], NULL, 10))) return false;
    return kernel_work(&work.kernel, us);
}

static void work_on_host(void) {
    uint64_t until = now() + work.host_ns;
    while (work.host_ns > 0 && now() < until) continue;
}

static bool start(void) {
    for (int i = 0; i < work.firsts; i++)
        if (!kernel_launch(&work.first[i], NULL, ORDINARY)) return false;
    return DO(cuCtxSynchronize);
}

static bool serve(void) {
    for (int i = 0; i < work.launches; i++) {
        if (!kernel_launch(&work.kernel, NULL, ORDINARY)) return false;
        work_on_host();
    }
    return DO(cuCtxSynchronize);
}

static void record(uint64_t begun, uint64_t ended) {
    if (ended < work.from) {
        work.warm++;
    } else if (work.count < MOST) {
        work.ends_us[work.count] = (long)((ended - work.from) / US);
        work.times_us[work.count++] = (long)((ended - begun) / US);
    }
}

static bool serve_all(void) {
    while (now() < work.until) {
        uint64_t begun = now();
        if (!serve()) return false;
        record(begun, now());
        if (work.rest_us > 0) (void)usleep(work.rest_us);
    }
    return true;
}

static void print_list(const char *name, const long *values) {
    printf(",\"%s\":[", name);
    for (unsigned i = 0; i < work.count; i++) printf("%s%ld", i > 0 ? "," : "", values[i]);
    printf("]");
}

int main(int argc, char **argv) {
    if (argc < 6 || argc - 6 > MOST_FIRST) return 2;
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    work.launches = (int)strtol(argv[1], NULL, 10);
    work.host_ns = strtoull(argv[3], NULL, 10) * US;
    work.rest_us = (useconds_t)strtoul(argv[4], NULL, 10);
    work.firsts = argc - 6;
    bool is_ready = kernels_start() && prepare((unsigned)strtoul(argv[2], NULL, 10), argv + 6);
    if (!kernels_await_begin(is_ready, &work.from)) return 1;
    work.until = work.from + (uint64_t)(strtod(argv[5], NULL) * 1e9);
    (void)(start() && serve_all());
    printf("{\"result\":%d,\"function\":\"%s\",\"warm\":%u", (int)failure.result, failure.function, work.warm);
    print_list("ends_us", work.ends_us);
    print_list("times_us", work.times_us);
    printf("}\n");
    (void)fflush(stdout);
    return failure.result != CUDA_SUCCESS;
}
