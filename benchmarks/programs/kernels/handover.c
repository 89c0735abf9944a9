/* Kernels whose begin and end are known, for the time between the work of two programs:
 *
 *   handover KIND CLOCK US COUNT OFFSET_US SECONDS
 *
 * KIND: busy = kernels of US one after another, a few in flight; burst = every 10 ms, OFFSET_US after the begin of the
 * period, COUNT kernels of US, and a wait for them. CLOCK: card = the kernels stamp the card's clock, which all programs
 * of a card have in common; host = times of events, by the clock of the host: for the simulated driver. Prints
 * {"ready":...}, waits for a line with a begin time (CLOCK_MONOTONIC, ns) and starts at once. At the end prints the
 * kernels that were launched in the SECONDS after the begin time, in ns after it, as {"asked":[...],"launched":[...],
 * "begins":[...],"ends":[...]}: when the program asked for the launch, when it returned, and when the kernel began and
 * ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "kernels.h"

enum { MOST = 1 << 15, RING = 8, PERIOD_US = 10000, LONGEST_SLEEP_LEFT_NS = 50000, US = 1000 };

static struct {
    bool has_stamps;
    unsigned us, count_in_burst;
    uint64_t offset_ns;
    struct kernel kernel;
    CUstream stream;
    CUevent base, ring[RING];
    uint64_t base_ns; /* the host's clock at `base` */
    uint64_t from, until;
    CUdeviceptr begin_stamps, end_stamps;
    int64_t clock_ahead_ns;
    uint64_t asked[MOST], launched[MOST], begins[MOST], ends[MOST];
    unsigned count, collected;
} work;

static bool prepare_stamps(void) {
    size_t size = MOST * sizeof(uint64_t);
    return DO(cuMemAlloc_v2, &work.begin_stamps, size) && DO(cuMemAlloc_v2, &work.end_stamps, size) &&
           DO(cuMemsetD8_v2, work.begin_stamps, 0xff, size) && DO(cuMemsetD8_v2, work.end_stamps, 0, size) &&
           kernels_clock_difference(&work.clock_ahead_ns);
}

static bool prepare(void) {
    if (!DO(cuStreamCreate, &work.stream, CU_STREAM_NON_BLOCKING) || !DO(cuEventCreate, &work.base, 0)) return false;
    for (int i = 0; i < RING; i++)
        if (!DO(cuEventCreate, &work.ring[i], work.has_stamps ? CU_EVENT_DISABLE_TIMING : 0)) return false;
    if (!(work.has_stamps ? kernel_stamped : kernel_work)(&work.kernel, work.us) ||
        (work.has_stamps && !prepare_stamps()) || !DO(cuEventRecord, work.base, work.stream) ||
        !DO(cuEventSynchronize, work.base))
        return false;
    work.base_ns = now();
    return true;
}

static bool launch(void) {
    unsigned i = work.count;
    work.asked[i] = now();
    uint64_t at = i * sizeof(uint64_t);
    bool is_launched =
        work.has_stamps
            ? kernel_stamped_launch(&work.kernel, work.stream, work.begin_stamps + at, work.end_stamps + at)
            : kernel_launch(&work.kernel, work.stream, ORDINARY);
    work.launched[i] = now();
    work.count++;
    return is_launched && DO(cuEventRecord, work.ring[i % RING], work.stream);
}

/* Waits for the oldest kernel that has not been waited for; without stamps its times are those of its event. */
static bool collect(void) {
    unsigned i = work.collected++;
    float ms = 0;
    if (!DO(cuEventSynchronize, work.ring[i % RING])) return false;
    if (work.has_stamps) return true;
    if (!DO(cuEventElapsedTime, &ms, work.base, work.ring[i % RING])) return false;
    work.ends[i] = work.base_ns + (uint64_t)((double)ms * 1e6);
    work.begins[i] = work.ends[i] - (uint64_t)work.us * US;
    return true;
}

static bool collect_all(void) {
    while (work.collected < work.count)
        if (!collect()) return false;
    return true;
}

static bool feed(void) {
    while (now() < work.until && work.count < MOST) {
        if (work.count - work.collected >= RING && !collect()) return false;
        if (!launch()) return false;
    }
    return collect_all();
}

/* Sleeps, and spins at the end, so that two programs start their bursts as far apart as they were told. */
static void wait_until(uint64_t ns) {
    uint64_t early = ns - LONGEST_SLEEP_LEFT_NS;
    struct timespec at = {.tv_sec = (time_t)(early / 1000000000), .tv_nsec = (long)(early % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) continue;
    while (now() < ns) continue;
}

static bool bursts(void) {
    uint64_t period = (uint64_t)PERIOD_US * US;
    uint64_t at = work.from + work.offset_ns;
    for (; at < work.until && work.count + work.count_in_burst <= MOST; at += period) {
        if (now() > at) continue; /* the burst before took longer than a period */
        wait_until(at);
        for (unsigned i = 0; i < work.count_in_burst; i++)
            if (!launch()) return false;
        if (!collect_all()) return false;
    }
    return true;
}

static bool read_stamps(void) {
    size_t size = MOST * sizeof(uint64_t);
    if (!DO(cuCtxSynchronize) || !DO(cuMemcpyDtoH_v2, work.begins, work.begin_stamps, size) ||
        !DO(cuMemcpyDtoH_v2, work.ends, work.end_stamps, size))
        return false;
    for (unsigned i = 0; i < work.count; i++) {
        work.begins[i] -= (uint64_t)work.clock_ahead_ns;
        work.ends[i] -= (uint64_t)work.clock_ahead_ns;
    }
    return true;
}

static void print_list(const char *name, const uint64_t *times) {
    const char *comma = "";
    printf(",\"%s\":[", name);
    for (unsigned i = 0; i < work.count; i++) {
        if (work.launched[i] < work.from) continue;
        printf("%s%lld", comma, (long long)times[i] - (long long)work.from);
        comma = ",";
    }
    printf("]");
}

static void print_result(void) {
    printf("{\"result\":%d,\"function\":\"%s\",\"clock_ahead_ns\":%lld", (int)failure.result, failure.function,
           (long long)work.clock_ahead_ns);
    print_list("asked", work.asked);
    print_list("launched", work.launched);
    print_list("begins", work.begins);
    print_list("ends", work.ends);
    printf("}\n");
    (void)fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 7) return 2;
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    work.has_stamps = strcmp(argv[2], "card") == 0;
    work.us = (unsigned)strtoul(argv[3], NULL, 10);
    work.count_in_burst = (unsigned)strtoul(argv[4], NULL, 10);
    work.offset_ns = strtoull(argv[5], NULL, 10) * US;
    if (work.count_in_burst < 1 || work.count_in_burst > RING) return 2;
    if (!kernels_await_begin(kernels_start() && prepare(), &work.from)) return 1;
    work.until = work.from + (uint64_t)(strtod(argv[6], NULL) * 1e9);
    bool is_done = strcmp(argv[1], "busy") == 0 ? feed() : bursts();
    (void)(is_done && work.has_stamps && read_stamps());
    print_result();
    return failure.result != CUDA_SUCCESS;
}
