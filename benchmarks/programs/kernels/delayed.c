/* Kernels that wait for their host, and what a program can gain by them:
 *
 *   delayed KIND US SECONDS
 *
 * KIND: timings = an autotuner, in rounds of 20 timings: a new kernel of US is launched once and waited for, then once
 * more behind a delay kernel, between two events, and then the host sets the word that the delay kernel waits for.
 * flags = rounds of 20 flags of its own: a kernel spins until the host sets a word, which the host does when a kernel of
 * US, launched behind it in another stream, has ended; it gives up after 10 s. waiting = while a delay kernel is always on the card, kernels of US are launched in another stream without waits;
 * unknown = the same, each with a grid or block that no launch had before, so that nothing is known of its time.
 * A delay kernel gives up after 100 ms. Prints {"ready":...}, waits for a line with a begin time (CLOCK_MONOTONIC, ns)
 * and starts at once. At the end prints the work of the SECONDS after the begin time: for timings and flags
 * {"rounds_us":[...],"times_us":[...],"given_up":...}: how long each round took, what was measured (how
 * long each flag took), and how many kernels gave up; for the others {"kernel_us":...,"ends_us":[...],"waits_us":[begin, end, ...]}: how long a kernel
 * takes, when each ended, and when delay kernels began and ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "kernels.h"

enum {
    TIMEOUT_MS = 100,
    FLAG_TIMEOUT_MS = 10000,
    TIMINGS = 20,
    MOST = 1 << 17,
    RING = 64,
    TRIES = 8,
    SHAPES = 64,
    THREADS = 1024
};

static struct {
    unsigned us;
    CUfunction delay, flag;
    struct kernel kernel;
    CUstream stream, delay_stream;
    CUevent base, first, last, delay_end, ring[RING];
    uint64_t base_ns; /* the host's clock at `base` */
    uint64_t from, until;
    volatile uint32_t *word;
    uint32_t wanted; /* of the last delay kernel */
    long rounds_us[MOST], times_us[MOST], waits_us[MOST];
    unsigned rounds, times, waits, given_up, shape;
    float kernel_ms;
} delayed;

/* One block on each processor, so that a delay kernel has room beside it. */
static bool launch(bool is_unknown) {
    uint64_t loops = delayed.kernel.loops;
    void *parameters[] = {&loops};
    unsigned number = is_unknown ? delayed.shape++ : 0, blocks = delayed.kernel.blocks / 2;
    unsigned less = number % SHAPES < blocks ? number % SHAPES : 0, threads = THREADS - number / SHAPES % (THREADS / 2);
    return DO(cuLaunchKernel, delayed.kernel.function, blocks - less, 1, 1, threads, 1, 1, 0, delayed.stream,
              loops > 0 ? parameters : NULL, NULL);
}

/* The shortest time of a few launches: the gate may hold a launch back behind the first event. */
static bool measure_kernel(void) {
    for (int i = 0; i < TRIES; i++) {
        float ms = 0;
        if (!DO(cuEventRecord, delayed.first, delayed.stream) || !launch(false) ||
            !DO(cuEventRecord, delayed.last, delayed.stream) || !DO(cuEventSynchronize, delayed.last) ||
            !DO(cuEventElapsedTime, &ms, delayed.first, delayed.last))
            return false;
        delayed.kernel_ms = i == 0 || ms < delayed.kernel_ms ? ms : delayed.kernel_ms;
    }
    return true;
}

static bool prepare(void) {
    void *memory = NULL;
    CUevent *events[] = {&delayed.base, &delayed.first, &delayed.last, &delayed.delay_end};
    for (unsigned i = 0; i < sizeof events / sizeof *events; i++)
        if (!DO(cuEventCreate, events[i], 0)) return false;
    for (int i = 0; i < RING; i++)
        if (!DO(cuEventCreate, &delayed.ring[i], 0)) return false;
    if (!DO(cuStreamCreate, &delayed.stream, CU_STREAM_NON_BLOCKING) ||
        !DO(cuStreamCreate, &delayed.delay_stream, CU_STREAM_NON_BLOCKING) ||
        !DO(cuMemAllocHost_v2, &memory, sizeof *delayed.word) || !kernel_await(&delayed.delay, TIMEOUT_MS) ||
        !kernel_await(&delayed.flag, FLAG_TIMEOUT_MS) ||
        !kernel_work(&delayed.kernel, delayed.us) || !measure_kernel() ||
        !DO(cuEventRecord, delayed.base, delayed.stream) || !DO(cuEventSynchronize, delayed.base))
        return false;
    delayed.base_ns = now();
    delayed.word = memory;
    *delayed.word = 0;
    return true;
}

static bool time_once(void) {
    struct kernel fresh; /* never launched before: from a module of its own */
    float ms = 0;
    delayed.wanted += 2;
    if (!kernel_spin(&fresh, delayed.us) || !kernel_launch(&fresh, delayed.stream, ORDINARY) ||
        !DO(cuStreamSynchronize, delayed.stream))
        return false;
    if (!kernel_await_launch(delayed.delay, delayed.stream, delayed.word, delayed.wanted) ||
        !DO(cuEventRecord, delayed.first, delayed.stream) || !kernel_launch(&fresh, delayed.stream, ORDINARY) ||
        !DO(cuEventRecord, delayed.last, delayed.stream))
        return false;
    delayed.given_up += *delayed.word == delayed.wanted + 1;
    *delayed.word = delayed.wanted;
    if (!DO(cuEventSynchronize, delayed.last) || !DO(cuEventElapsedTime, &ms, delayed.first, delayed.last))
        return false;
    if (delayed.times < MOST) delayed.times_us[delayed.times++] = (long)((double)ms * 1e3);
    return true;
}

static bool flag_once(void) {
    uint64_t begun = now();
    delayed.wanted += 2;
    if (!kernel_await_launch(delayed.flag, delayed.delay_stream, delayed.word, delayed.wanted) || !launch(false) ||
        !DO(cuStreamSynchronize, delayed.stream))
        return false;
    delayed.given_up += *delayed.word == delayed.wanted + 1;
    *delayed.word = delayed.wanted;
    if (!DO(cuStreamSynchronize, delayed.delay_stream)) return false;
    if (delayed.times < MOST) delayed.times_us[delayed.times++] = (long)((now() - begun) / 1000);
    return true;
}

static bool rounds_of(bool (*once)(void)) {
    while (now() < delayed.until) {
        uint64_t begun = now();
        for (int i = 0; i < TIMINGS; i++)
            if (!once()) return false;
        if (begun >= delayed.from && delayed.rounds < MOST)
            delayed.rounds_us[delayed.rounds++] = (long)((now() - begun) / 1000);
    }
    return true;
}

/* When the work before an event ended, in us after the begin. */
static bool end_of(CUevent event, double *us) {
    float ms = 0;
    if (!DO(cuEventSynchronize, event) || !DO(cuEventElapsedTime, &ms, delayed.base, event)) return false;
    *us = ((double)delayed.base_ns - (double)delayed.from) / 1e3 + (double)ms * 1e3;
    return true;
}

static bool collect(CUevent event) {
    double us = 0;
    if (!end_of(event, &us)) return false;
    if (us >= 0 && delayed.times < MOST) delayed.times_us[delayed.times++] = (long)us;
    return true;
}

/* The gate holds launches back, not kernels, so the delay kernel begins when its launch returns. */
static bool launch_delay(void) {
    delayed.wanted += 2;
    if (!kernel_await_launch(delayed.delay, delayed.delay_stream, delayed.word, delayed.wanted)) return false;
    double begun = ((double)now() - (double)delayed.from) / 1e3;
    if (delayed.waits + 1 < MOST) delayed.waits_us[delayed.waits++] = (long)begun;
    return DO(cuEventRecord, delayed.delay_end, delayed.delay_stream);
}

static bool end_delay(void) {
    double us = 0;
    if (!end_of(delayed.delay_end, &us)) return false;
    if (delayed.waits < MOST) delayed.waits_us[delayed.waits++] = (long)us;
    return true;
}

static bool feed(bool is_unknown) {
    unsigned number = 0;
    if (!launch_delay()) return false;
    for (; now() < delayed.until; number++) {
        CUevent event = delayed.ring[number % RING];
        if (number >= RING && !collect(event)) return false;
        if (calls.cuEventQuery_(delayed.delay_end) == CUDA_SUCCESS && (!end_delay() || !launch_delay())) return false;
        if (!launch(is_unknown) || !DO(cuEventRecord, event, delayed.stream)) return false;
    }
    for (unsigned i = number < RING ? 0 : number - RING; i < number; i++)
        if (!collect(delayed.ring[i % RING])) return false;
    return end_delay();
}

static void print_list(const char *name, const long *values, unsigned count) {
    printf("\"%s\":[", name);
    for (unsigned i = 0; i < count; i++) printf("%s%ld", i > 0 ? "," : "", values[i]);
    printf("],");
}

static void print_result(bool has_rounds) {
    printf("{\"result\":%d,\"function\":\"%s\",", (int)failure.result, failure.function);
    print_list("rounds_us", delayed.rounds_us, delayed.rounds);
    print_list(has_rounds ? "times_us" : "ends_us", delayed.times_us, delayed.times);
    print_list("waits_us", delayed.waits_us, delayed.waits);
    printf("\"kernel_us\":%.1f,\"given_up\":%u}\n", (double)delayed.kernel_ms * 1e3, delayed.given_up);
    (void)fflush(stdout);
}

static bool run(const char *kind) {
    if (strcmp(kind, "timings") == 0) return rounds_of(time_once);
    if (strcmp(kind, "flags") == 0) return rounds_of(flag_once);
    return feed(strcmp(kind, "unknown") == 0);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    delayed.us = (unsigned)strtoul(argv[2], NULL, 10);
    if (!kernels_await_begin(kernels_start() && prepare(), &delayed.from)) return 1;
    delayed.until = delayed.from + (uint64_t)(strtod(argv[3], NULL) * 1e9);
    (void)run(argv[1]);
    print_result(strcmp(argv[1], "timings") == 0 || strcmp(argv[1], "flags") == 0);
    return failure.result != CUDA_SUCCESS;
}
