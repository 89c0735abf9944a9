/* Says when each piece of its work was done:
 *
 *   timed KIND US SECONDS
 *
 * KIND is steady (kernels one after another, a few in flight), pause (the same, but for the middle third of the time),
 * infer (two kernels about every 10 ms, waited for), or regular (the same, each 10 ms exactly). Says {"ready":...},
 * waits for a line with a moment of CLOCK_MONOTONIC in ns, begins at once, and says what was done in the SECONDS from
 * that moment on: for steady and pause the us since then at which each kernel ended, and those at which it stopped and
 * came back, for infer and regular the us that each pair took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "kernels.h"

enum { IN_FLIGHT = 8, MOST = 1 << 16, LINE_SIZE = 64, US = 1000, PERIOD_US = 10000, JITTER_US = 2000 };

static struct {
    struct kernel kernel;
    CUstream stream;
    CUevent base, ring[IN_FLIGHT];
    uint64_t base_ns; /* host's time of `base` */
    uint64_t from, until;
    uint64_t stopped, back;
    long told[MOST];
    unsigned count;
} timed;

static void tell(double us) {
    if (us >= 0 && timed.count < MOST) timed.told[timed.count++] = (long)us;
}

static bool prepare(unsigned us) {
    if (!DO(cuStreamCreate, &timed.stream, CU_STREAM_NON_BLOCKING) || !DO(cuEventCreate, &timed.base, 0)) return false;
    for (int i = 0; i < IN_FLIGHT; i++)
        if (!DO(cuEventCreate, &timed.ring[i], 0)) return false;
    if (!kernel_work(&timed.kernel, us) || !DO(cuEventRecord, timed.base, timed.stream) ||
        !DO(cuEventSynchronize, timed.base))
        return false;
    timed.base_ns = now();
    return true;
}

static bool launch(void) { return kernel_launch(&timed.kernel, timed.stream, ORDINARY); }

/* When the kernel before that event ended. */
static bool collect(CUevent event) {
    float ms = 0;
    if (!DO(cuEventSynchronize, event) || !DO(cuEventElapsedTime, &ms, timed.base, event)) return false;
    tell(((double)timed.base_ns - (double)timed.from) / 1e3 + (double)ms * 1e3);
    return true;
}

static bool feed_until(uint64_t until) {
    unsigned number = 0;
    for (; now() < until; number++) {
        CUevent event = timed.ring[number % IN_FLIGHT];
        if (number >= IN_FLIGHT && !collect(event)) return false;
        if (!launch() || !DO(cuEventRecord, event, timed.stream)) return false;
    }
    for (unsigned i = number < IN_FLIGHT ? 0 : number - IN_FLIGHT; i < number; i++)
        if (!collect(timed.ring[i % IN_FLIGHT])) return false;
    return true;
}

static void sleep_until(uint64_t ns) {
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

static bool pause_between(void) {
    uint64_t third = (timed.until - timed.from) / 3;
    if (!feed_until(timed.from + third)) return false;
    timed.stopped = now() - timed.from;
    sleep_until(timed.from + 2 * third);
    timed.back = now() - timed.from;
    return feed_until(timed.until);
}

/* Later by up to `jitter_us`, so that no neighbour's turns are followed. */
static bool infer(uint64_t jitter_us) {
    uint64_t seed = 1;
    for (uint64_t at = now(); at < timed.until; at += (uint64_t)PERIOD_US * US) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        sleep_until(at + (seed >> 33) % (jitter_us * US + 1));
        uint64_t begun = now();
        if (!launch() || !launch() || !DO(cuStreamSynchronize, timed.stream)) return false;
        if (begun >= timed.from) tell((double)(now() - begun) / 1e3);
    }
    return true;
}

static void say(void) {
    printf("{\"result\":%d,\"function\":\"%s\",\"stopped_us\":%llu,\"back_us\":%llu,\"told_us\":[", (int)failure.result,
           failure.function, (unsigned long long)timed.stopped / US, (unsigned long long)timed.back / US);
    for (unsigned i = 0; i < timed.count; i++) printf("%s%ld", i > 0 ? "," : "", timed.told[i]);
    printf("]}\n");
    (void)fflush(stdout);
}

int main(int argc, char **argv) {
    char line[LINE_SIZE];
    if (argc < 4) return 2;
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    bool started = kernels_start() && prepare((unsigned)strtoul(argv[2], NULL, 10));
    printf("{\"ready\":%s,\"result\":%d,\"function\":\"%s\"}\n", started ? "true" : "false", (int)failure.result,
           failure.function);
    (void)fflush(stdout);
    if (!started || !fgets(line, sizeof line, stdin)) return 1;
    timed.from = strtoull(line, NULL, 10);
    timed.until = timed.from + (uint64_t)(strtod(argv[3], NULL) * 1e9);
    if (strcmp(argv[1], "infer") == 0)
        (void)infer(JITTER_US);
    else if (strcmp(argv[1], "regular") == 0)
        (void)infer(0);
    else if (strcmp(argv[1], "pause") == 0)
        (void)pause_between();
    else if (strcmp(argv[1], "steady") == 0)
        (void)feed_until(timed.until);
    else
        return 2;
    say();
    return failure.result != CUDA_SUCCESS;
}
