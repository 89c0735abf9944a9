/* A load that launches kernels of a fixed duration one after another, without waiting for each:
 *
 *   feed KIND US STREAMS SECONDS [IDLE_US]
 *
 * KIND: kernel = spins for US; work = does an amount of work that takes US alone on the card, even when other contexts
 * interrupt it; cooperative; graph = a graph of a thousand kernels, US together; thread = into the per-thread default
 * stream; sync = waits for each launch, then IDLE_US; launch = measures what a launch costs the host; copy = copies
 * US * COPY_BYTES_PER_US from page-locked memory to the card. Prints {"ready":...} and waits for a line. Warms up for a
 * second, runs for SECONDS, and prints how many launches or copies completed in how many ns, and the longest launch.
 * Each kernel fills the card, so that no two run at the same time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels.h"

enum { RING = 8, MOST_STREAMS = 64, NODES = 1000, BATCH_US = 2500, BATCH_MOST = 64, LAUNCHES = 500, NAME_SIZE = 64 };
enum { COPY_BYTES_PER_US = 50000 }; /* about the speed of PCIe 5.0 x16 */

#define TAIL_NS 200000000ULL

static struct {
    const char *kind;
    unsigned us, streams, idle_us;
    double seconds;
    struct kernel kernel;
    enum way way;
    CUgraphExec graph;
    CUdeviceptr copy_to;
    void *copy_from;
    size_t copy_size;
    CUstream stream[MOST_STREAMS];
    CUevent ring[RING];
    uint64_t from, until; /* launches in this time are counted */
    uint64_t count, longest;
} feed;

static bool is_kind(const char *kind) { return strcmp(feed.kind, kind) == 0; }

static bool launch(CUstream stream) {
    if (is_kind("copy")) return DO(cuMemcpyHtoDAsync_v2, feed.copy_to, feed.copy_from, feed.copy_size, stream);
    return is_kind("graph") ? DO(cuGraphLaunch, feed.graph, stream) : kernel_launch(&feed.kernel, stream, feed.way);
}

static bool timed(CUstream stream) {
    uint64_t begun = now();
    bool done = launch(stream);
    uint64_t ended = now();
    if (ended < feed.from || ended > feed.until) return done;
    if (ended - begun > feed.longest) feed.longest = ended - begun;
    feed.count++;
    return done;
}

static CUstream stream_of(uint64_t n) {
    return is_kind("thread") ? CU_STREAM_PER_THREAD : feed.stream[n % feed.streams];
}

static bool wait_and_idle(CUstream stream) {
    if (!DO(cuStreamSynchronize, stream)) return false;
    return feed.idle_us == 0 || usleep(feed.idle_us) == 0;
}

/* An event for each batch bounds the launches in flight, when the limiter does not. */
static bool feed_batch(uint64_t number, unsigned size) {
    CUstream stream = stream_of(0);
    CUevent event = feed.ring[number % RING];
    if (number >= RING && !DO(cuEventSynchronize, event)) return false;
    for (unsigned i = 0; i < size; i++) {
        stream = stream_of(number * size + i);
        if (!timed(stream) || (is_kind("sync") && !wait_and_idle(stream))) return false;
    }
    return DO(cuEventRecord, event, stream);
}

static bool feed_for(double seconds) {
    unsigned size = BATCH_US / (feed.us + 1);
    uint64_t until = now() + (uint64_t)(seconds * 1e9);
    size = size < 1 || is_kind("sync") ? 1 : size > BATCH_MOST ? BATCH_MOST : size;
    for (uint64_t number = 0; now() < until; number++)
        if (!feed_batch(number, size)) return false;
    return DO(cuCtxSynchronize);
}

static bool capture(void) {
    CUgraph graph;
    if (!DO(cuStreamBeginCapture_v2, feed.stream[0], CU_STREAM_CAPTURE_MODE_GLOBAL)) return false;
    for (int i = 0; i < NODES; i++) kernel_launch(&feed.kernel, feed.stream[0], ORDINARY);
    return DO(cuStreamEndCapture, feed.stream[0], &graph) && DO(cuGraphInstantiateWithFlags, &feed.graph, graph, 0);
}

static bool allocate(void) {
    feed.copy_size = (size_t)feed.us * COPY_BYTES_PER_US;
    return DO(cuMemAlloc_v2, &feed.copy_to, feed.copy_size) && DO(cuMemAllocHost_v2, &feed.copy_from, feed.copy_size);
}

static bool load(void) {
    if (is_kind("copy")) return allocate();
    feed.way = is_kind("thread") ? PER_THREAD : is_kind("cooperative") ? COOPERATIVE : ORDINARY;
    if (is_kind("work")) return kernel_work(&feed.kernel, feed.us);
    return kernel_spin(&feed.kernel, is_kind("graph") ? feed.us / NODES : feed.us);
}

static bool prepare(void) {
    for (unsigned i = 0; i < feed.streams; i++)
        if (!DO(cuStreamCreate, &feed.stream[i], CU_STREAM_NON_BLOCKING)) return false;
    for (int i = 0; i < RING; i++)
        if (!DO(cuEventCreate, &feed.ring[i], CU_EVENT_DISABLE_TIMING)) return false;
    return load() && (!is_kind("graph") || capture());
}

static void print_result(uint64_t ns) {
    printf("{\"result\":%d,\"function\":\"%s\",\"count\":%llu,\"ns\":%llu,\"longest_ns\":%llu}\n", (int)failure.result,
           failure.function, (unsigned long long)feed.count, (unsigned long long)ns, (unsigned long long)feed.longest);
    (void)fflush(stdout);
}

static bool await_line(void) {
    char line[NAME_SIZE];
    if (!fgets(line, sizeof line, stdin)) return false;
    feed.from = strtoull(line, NULL, 10);
    return true;
}

/* Answers each line with the host's time for LAUNCHES launches. */
static void time_launches(void) {
    feed.kernel.blocks = 1;
    do {
        feed.count = LAUNCHES;
        uint64_t begun = now();
        for (int i = 0; i < LAUNCHES; i++) kernel_launch(&feed.kernel, feed.stream[0], ORDINARY);
        uint64_t taken = now() - begun;
        DO(cuCtxSynchronize);
        print_result(taken);
    } while (await_line());
}

/* Alone on the card: measures from a synchronization to the next one. */
static void run_alone(void) {
    feed.until = UINT64_MAX;
    feed_for(feed.seconds < 1 ? feed.seconds : 1);
    feed.count = feed.longest = 0;
    uint64_t begun = now();
    feed_for(feed.seconds);
    print_result(now() - begun);
}

/* Beside other loads: all count in the same time, and go on for TAIL_NS after it. */
static void run_among_others(void) {
    uint64_t ns = (uint64_t)(feed.seconds * 1e9);
    feed.until = feed.from + ns;
    feed_for((double)(feed.until + TAIL_NS - now()) / 1e9);
    print_result(ns);
}

int main(int argc, char **argv) {
    char gpu[NAME_SIZE] = "";
    if (argc < 5) return 2;
    feed.kind = argv[1];
    feed.us = (unsigned)strtoul(argv[2], NULL, 10);
    feed.streams = (unsigned)strtoul(argv[3], NULL, 10);
    feed.seconds = strtod(argv[4], NULL);
    feed.idle_us = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 0;
    if (feed.streams < 1 || feed.streams > MOST_STREAMS) return 2;
    bool started = kernels_start() && prepare();
    if (started) (void)DO(cuDeviceGetName, gpu, sizeof gpu, 0);
    printf("{\"ready\":%s,\"gpu\":\"%s\",\"loops\":%llu,\"result\":%d,\"function\":\"%s\"}\n",
           started ? "true" : "false", gpu, (unsigned long long)feed.kernel.loops, (int)failure.result,
           failure.function);
    (void)fflush(stdout);
    if (!started || !await_line()) return 1;
    if (is_kind("launch"))
        time_launches();
    else
        feed.from ? run_among_others() : run_alone();
    return failure.result != CUDA_SUCCESS;
}
