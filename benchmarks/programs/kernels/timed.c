/* A load that measures the time of each piece of its work:
 *
 *   timed KIND US SECONDS
 *
 * KIND: steady = kernels one after another, a few in flight; spin = the same with kernels that spin by the card's clock;
 * waited = the same as steady, but each kernel is waited for; pause = as steady, but idle in the middle third of the
 * time; endless = one kernel that spins for US, which is waited for: meant to be killed; infer = two kernels about every 10 ms, and a wait for them; regular = the same every 10 ms exactly; rest = the
 * same with 8 ms of sleep after each wait; eager = 360 kernels with 11 us of host work for each, and a wait. Prints
 * {"ready":...}, waits for a line with a begin time (CLOCK_MONOTONIC, ns) and starts at once. At the end prints the
 * work of the SECONDS after the begin time as {"times_us":[...],"stopped_us":...,"back_us":...}: for steady, spin,
 * waited and pause, when each kernel ended, and when the work stopped and came back; for the others, how long each pair or each
 * 360 kernels took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "kernels.h"

enum { IN_FLIGHT = 8, LONG_US = 2000000, LONG_IN_FLIGHT = 2, MOST = 1 << 16, US = 1000, PERIOD_US = 10000, JITTER_US = 2000, REST_US = 8000, EAGER_LAUNCHES = 360, EAGER_US = 11 };

static struct {
    struct kernel kernel;
    CUstream stream;
    CUevent base, ring[IN_FLIGHT];
    uint64_t base_ns; /* the host's clock at `base` */
    uint64_t from, until;
    uint64_t stopped, back;
    unsigned in_flight; /* of kernels of LONG_US or more only two: at the end, they are waited for */
    long times_us[MOST];
    unsigned count;
} timed;

static void record(double us) {
    if (us >= 0 && timed.count < MOST) timed.times_us[timed.count++] = (long)us;
}

static bool prepare(unsigned us, bool spins) {
    timed.in_flight = us < LONG_US ? IN_FLIGHT : LONG_IN_FLIGHT;
    if (!DO(cuStreamCreate, &timed.stream, CU_STREAM_NON_BLOCKING) || !DO(cuEventCreate, &timed.base, 0)) return false;
    for (int i = 0; i < IN_FLIGHT; i++)
        if (!DO(cuEventCreate, &timed.ring[i], 0)) return false;
    if (!(spins ? kernel_spin : kernel_work)(&timed.kernel, us) || !DO(cuEventRecord, timed.base, timed.stream) ||
        !DO(cuEventSynchronize, timed.base))
        return false;
    timed.base_ns = now();
    return true;
}

static bool launch(void) { return kernel_launch(&timed.kernel, timed.stream, ORDINARY); }

/* Records when the kernel before the event ended. */
static bool collect(CUevent event) {
    float ms = 0;
    if (!DO(cuEventSynchronize, event) || !DO(cuEventElapsedTime, &ms, timed.base, event)) return false;
    record(((double)timed.base_ns - (double)timed.from) / 1e3 + (double)ms * 1e3);
    return true;
}

static bool feed_until(uint64_t until) {
    unsigned number = 0, most = timed.in_flight;
    for (; now() < until; number++) {
        CUevent event = timed.ring[number % most];
        if (number >= most && !collect(event)) return false;
        if (!launch() || !DO(cuEventRecord, event, timed.stream)) return false;
    }
    for (unsigned i = number < most ? 0 : number - most; i < number; i++)
        if (!collect(timed.ring[i % most])) return false;
    return true;
}

static bool wait_for_each(void) {
    while (now() < timed.until)
        if (!launch() || !DO(cuEventRecord, timed.ring[0], timed.stream) || !collect(timed.ring[0])) return false;
    return true;
}

static void sleep_until(uint64_t ns) {
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

static bool feed_with_pause(void) {
    uint64_t third = (timed.until - timed.from) / 3;
    if (!feed_until(timed.from + third)) return false;
    timed.stopped = now() - timed.from;
    sleep_until(timed.from + 2 * third);
    timed.back = now() - timed.from;
    return feed_until(timed.until);
}

static bool finish(uint64_t begun) {
    if (!DO(cuStreamSynchronize, timed.stream)) return false;
    if (begun >= timed.from) record((double)(now() - begun) / 1e3);
    return true;
}

static bool time_pair(void) {
    uint64_t begun = now();
    return launch() && launch() && finish(begun);
}

static bool eager(void) {
    while (now() < timed.until) {
        uint64_t begun = now();
        for (int i = 0; i < EAGER_LAUNCHES; i++) {
            uint64_t until = now() + (uint64_t)EAGER_US * US;
            if (!launch()) return false;
            while (now() < until) continue;
        }
        if (!finish(begun)) return false;
    }
    return true;
}

static bool rest(void) {
    while (now() < timed.until) {
        if (!time_pair()) return false;
        sleep_until(now() + (uint64_t)REST_US * US);
    }
    return true;
}

/* Each pair starts up to `jitter_us` late, so that it does not synchronize with the turns of other containers. */
static bool infer(uint64_t jitter_us) {
    uint64_t seed = 1;
    for (uint64_t at = now(); at < timed.until; at += (uint64_t)PERIOD_US * US) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        sleep_until(at + (seed >> 33) % (jitter_us * US + 1));
        if (!time_pair()) return false;
    }
    return true;
}

static void print_result(void) {
    printf("{\"result\":%d,\"function\":\"%s\",\"stopped_us\":%llu,\"back_us\":%llu,\"times_us\":[",
           (int)failure.result, failure.function, (unsigned long long)timed.stopped / US,
           (unsigned long long)timed.back / US);
    for (unsigned i = 0; i < timed.count; i++) printf("%s%ld", i > 0 ? "," : "", timed.times_us[i]);
    printf("]}\n");
    (void)fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    bool is_endless = strcmp(argv[1], "endless") == 0, spins = is_endless || strcmp(argv[1], "spin") == 0;
    bool is_ready = kernels_start() && prepare((unsigned)strtoul(argv[2], NULL, 10), spins);
    if (!kernels_await_begin(is_ready, &timed.from)) return 1;
    timed.until = timed.from + (uint64_t)(strtod(argv[3], NULL) * 1e9);
    if (strcmp(argv[1], "infer") == 0)
        (void)infer(JITTER_US);
    else if (strcmp(argv[1], "regular") == 0)
        (void)infer(0);
    else if (strcmp(argv[1], "eager") == 0)
        (void)eager();
    else if (strcmp(argv[1], "rest") == 0)
        (void)rest();
    else if (strcmp(argv[1], "pause") == 0)
        (void)feed_with_pause();
    else if (strcmp(argv[1], "waited") == 0)
        (void)wait_for_each();
    else if (is_endless)
        (void)(launch() && finish(now()));
    else if (spins || strcmp(argv[1], "steady") == 0)
        (void)feed_until(timed.until);
    else
        return 2;
    print_result();
    return failure.result != CUDA_SUCCESS;
}
