/* A load whose CUDA graph launches itself on the card:
 *
 *   self_launch US ROUNDS SECONDS
 *
 * The graph has a kernel that does an amount of work that takes US alone on the card, and a last node that launches the
 * graph again (tail launch) until it has run ROUNDS times. Prints {"ready":...}, waits for a line with a begin time
 * (CLOCK_MONOTONIC, ns) and starts at once. At the end prints how many launches by the host completed in the SECONDS
 * after the begin time. BENCH_LOOPS is the number of iterations of this program's kernel per ms; when it is not set, it
 * is measured now.
 *
 * The CUDA Programming Guide (device graph launch) leaves undefined what happens when the host and the card launch one
 * graph at the same time. Therefore two instances alternate, and the host launches an instance only after the launch
 * before has completed. An event after a launch also waits for the launches that the card adds. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { INSTANCES = 2, BLOCKS_PER_SM = 2, THREADS = 1024, TRIES = 8, FIRST_LOOPS = 20000, LINE_SIZE = 64 };

#define TAIL_NS 200000000ULL /* as in feed.c */

struct instance {
    cudaGraphExec_t graph;
    cudaEvent_t done; /* recorded after each launch */
};

static struct {
    unsigned rounds, blocks;
    uint64_t loops;
    cudaStream_t stream;
    struct instance instances[INSTANCES];
    uint64_t from, until; /* launches that complete in this time are counted */
    uint64_t count;
} load;

static struct {
    int result;
    const char *function;
} failure = {cudaSuccess, ""};

static __device__ uint64_t rounds_run;
static __device__ int device_failure;
__device__ unsigned sink; /* not static, so that the store is kept */

/* The result is stored only if it has one of 2^32 values, so that the compiler cannot drop the computation. */
static __global__ void work(uint64_t loops) {
    unsigned value = threadIdx.x;
#pragma unroll 1
    for (; loops > 0; loops--) value = value * 1664525 + 1013904223;
    if (value == 3735928559) sink = value;
}

static __global__ void launch_again(unsigned rounds) {
    if (++rounds_run % rounds == 0) return;
    cudaError_t result = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
    if (result != cudaSuccess) device_failure = result;
}

/* Keeps the first failure. */
static bool did(const char *function, int result) {
    if (result != cudaSuccess && failure.result == cudaSuccess) failure = {result, function};
    return result == cudaSuccess;
}
#define DO(name, ...) did(#name, name(__VA_ARGS__))

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

static bool launch_work(uint64_t loops) {
    work<<<load.blocks, THREADS, 0, load.stream>>>(loops);
    return DO(cudaGetLastError);
}

/* The shortest time of TRIES launches. */
static bool time_of(uint64_t loops, float *ms) {
    cudaEvent_t begin;
    cudaEvent_t end;
    if (!DO(cudaEventCreate, &begin) || !DO(cudaEventCreate, &end)) return false;
    for (int i = 0; i < TRIES; i++) {
        float one = 0;
        if (!DO(cudaEventRecord, begin, load.stream) || !launch_work(loops) || !DO(cudaEventRecord, end, load.stream) ||
            !DO(cudaEventSynchronize, end) || !DO(cudaEventElapsedTime, &one, begin, end))
            return false;
        *ms = i == 0 || one < *ms ? one : *ms;
    }
    return DO(cudaEventDestroy, begin) && DO(cudaEventDestroy, end);
}

/* Measures the difference of two lengths, because each launch has a constant part. */
static bool calibrate(unsigned us) {
    const char *known = getenv("BENCH_LOOPS");
    double per_ms = known != NULL ? strtod(known, NULL) : 0;
    float once = 0;
    float twice = 0;
    if (known == NULL) {
        if (!time_of(FIRST_LOOPS, &once) || !time_of(2 * FIRST_LOOPS, &twice)) return false;
        per_ms = FIRST_LOOPS / (double)(twice - once);
    }
    load.loops = (uint64_t)(per_ms * us / 1e3) + 1;
    return true;
}

static bool instantiate(struct instance *instance) {
    cudaGraph_t graph;
    if (!DO(cudaStreamBeginCapture, load.stream, cudaStreamCaptureModeGlobal) || !launch_work(load.loops)) return false;
    launch_again<<<1, 1, 0, load.stream>>>(load.rounds);
    return DO(cudaGetLastError) && DO(cudaStreamEndCapture, load.stream, &graph) &&
           DO(cudaGraphInstantiateWithFlags, &instance->graph, graph, cudaGraphInstantiateFlagDeviceLaunch) &&
           DO(cudaGraphUpload, instance->graph, load.stream) &&
           DO(cudaEventCreateWithFlags, &instance->done, cudaEventDisableTiming);
}

static bool prepare(unsigned us) {
    int units = 0;
    if (!DO(cudaDeviceGetAttribute, &units, cudaDevAttrMultiProcessorCount, 0) ||
        !DO(cudaStreamCreateWithFlags, &load.stream, cudaStreamNonBlocking))
        return false;
    load.blocks = (unsigned)units * BLOCKS_PER_SM;
    if (!calibrate(us)) return false;
    for (int i = 0; i < INSTANCES; i++)
        if (!instantiate(&load.instances[i])) return false;
    return DO(cudaStreamSynchronize, load.stream);
}

static bool complete(const struct instance *instance) {
    if (!DO(cudaEventSynchronize, instance->done)) return false;
    uint64_t ended = now();
    if (ended >= load.from && ended < load.until) load.count++;
    return true;
}

/* Whether each launch by the host ran all its rounds. */
static bool check_rounds(uint64_t launches) {
    uint64_t run = 0;
    int result = 0;
    if (!DO(cudaMemcpyFromSymbol, &run, rounds_run, sizeof run) ||
        !DO(cudaMemcpyFromSymbol, &result, device_failure, sizeof result))
        return false;
    return did("cudaGraphLaunch on the card", result) &&
           did("rounds on the card", run == launches * load.rounds ? cudaSuccess : cudaErrorUnknown);
}

/* Goes on for TAIL_NS after the time that counts, because the other loads may end later. */
static bool feed(void) {
    uint64_t number = 0;
    for (; now() < load.until + TAIL_NS; number++) {
        const struct instance *instance = &load.instances[number % INSTANCES];
        if (number >= INSTANCES && !complete(instance)) return false;
        if (!DO(cudaGraphLaunch, instance->graph, load.stream) || !DO(cudaEventRecord, instance->done, load.stream))
            return false;
    }
    return DO(cudaStreamSynchronize, load.stream) && check_rounds(number);
}

int main(int argc, char **argv) {
    char line[LINE_SIZE];
    if (argc < 4) return 2;
    load.rounds = (unsigned)strtoul(argv[2], NULL, 10);
    uint64_t ns = (uint64_t)(strtod(argv[3], NULL) * 1e9);
    if (load.rounds < 1) return 2;
    bool started = prepare((unsigned)strtoul(argv[1], NULL, 10));
    printf("{\"ready\":%s,\"loops\":%llu,\"result\":%d,\"function\":\"%s\"}\n", started ? "true" : "false",
           (unsigned long long)load.loops, failure.result, failure.function);
    (void)fflush(stdout);
    if (!started || !fgets(line, sizeof line, stdin)) return 1;
    load.from = strtoull(line, NULL, 10);
    load.until = load.from + ns;
    (void)feed();
    printf("{\"result\":%d,\"function\":\"%s\",\"count\":%llu,\"ns\":%llu}\n", failure.result, failure.function,
           (unsigned long long)load.count, (unsigned long long)ns);
    (void)fflush(stdout);
    return failure.result != cudaSuccess;
}
