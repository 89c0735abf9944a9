#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TEXT_SIZE = 2048, NAME_SIZE = 64, LINE_SIZE = 64, BLOCKS_PER_SM = 2, THREADS = 1024, TRIES = 8, FIRST_LOOPS = 20000, CLOCK_TRIES = 32, CLOCK_ARRIVES_NS = 100000, CLOCK_TIMEOUT_NS = 1000000000 };

/* The simulated driver reads the duration from the end of the name. */
static const char spin_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry spin_%u()\n{\n.reg .u64 %%t<3>;\n.reg .pred %%p;\n"
    "mov.u64 %%t0, %%globaltimer;\nAGAIN:\nmov.u64 %%t1, %%globaltimer;\nsub.u64 %%t2, %%t1, %%t0;\n"
    "setp.lt.u64 %%p, %%t2, %u000;\n@%%p bra AGAIN;\nret;\n}\n";

/* The result is stored only if it has one of 2^32 values, so that the compiler cannot drop the computation. */
static const char work_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry work_%u(.param .u64 turns)\n{\n.reg .u64 %%t<2>;\n"
    ".reg .u32 %%r<2>;\n.reg .pred %%p;\nld.param.u64 %%t0, [turns];\nmov.u64 %%t1, 0;\nmov.u32 %%r0, %%tid.x;\n"
    "AGAIN:\nmad.lo.u32 %%r0, %%r0, 1664525, 1013904223;\nsub.u64 %%t0, %%t0, 1;\nsetp.ne.u64 %%p, %%t0, 0;\n"
    "@%%p bra AGAIN;\nsetp.eq.u32 %%p, %%r0, 3735928559;\n@%%p st.global.u32 [%%t1], %%r0;\nret;\n}\n";

/* Waits until the word is `value` or more, and writes value + 1 into it after the time that its name says, in ms. */
static const char await_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry await%u_0(.param .u64 word, .param .u32 value)\n{\n.reg .u64 %%t<4>;\n.reg .u32 %%r<4>;\n"
    ".reg .pred %%p<2>;\nld.param.u64 %%t0, [word];\nld.param.u32 %%r0, [value];\nmov.u64 %%t1, %%globaltimer;\n"
    "AGAIN:\nld.volatile.u32 %%r1, [%%t0];\nsub.s32 %%r2, %%r1, %%r0;\nsetp.ge.s32 %%p0, %%r2, 0;\n@%%p0 bra DONE;\n"
    "mov.u64 %%t2, %%globaltimer;\nsub.u64 %%t3, %%t2, %%t1;\nsetp.lt.u64 %%p1, %%t3, %u000000;\n@%%p1 bra AGAIN;\n"
    "add.u32 %%r3, %%r0, 1;\nst.volatile.u32 [%%t0], %%r3;\nDONE:\nret;\n}\n";

/* Sets the word of its rank to `value`, waits until those of all ranks are that or more, and then for the time that its
 * name says. No word has two writers: atomic operations of two cards on memory of the host may not exclude each other. */
static const char collective_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry collective%u_%u(.param .u64 group, .param .u32 value, .param .u64 words, .param .u32 rank)\n{\n"
    ".reg .u64 %%t<4>;\n.reg .u32 %%r<5>;\n.reg .pred %%p<2>;\nld.param.u32 %%r0, [value];\n"
    "ld.param.u64 %%t0, [words];\nld.param.u32 %%r1, [rank];\nmul.wide.u32 %%t1, %%r1, 4;\nadd.u64 %%t1, %%t0, %%t1;\n"
    "st.volatile.u32 [%%t1], %%r0;\nmov.u32 %%r2, 0;\nNEXT:\nmul.wide.u32 %%t1, %%r2, 4;\nadd.u64 %%t1, %%t0, %%t1;\n"
    "AGAIN:\nld.volatile.u32 %%r3, [%%t1];\nsub.s32 %%r4, %%r3, %%r0;\nsetp.lt.s32 %%p0, %%r4, 0;\n@%%p0 bra AGAIN;\n"
    "add.u32 %%r2, %%r2, 1;\nsetp.lt.u32 %%p0, %%r2, %u;\n@%%p0 bra NEXT;\nmov.u64 %%t1, %%globaltimer;\nMOVES:\n"
    "mov.u64 %%t2, %%globaltimer;\nsub.u64 %%t3, %%t2, %%t1;\nsetp.lt.u64 %%p1, %%t3, %u000;\n@%%p1 bra MOVES;\nret;\n}\n";

/* All threads work; the first one of each block stamps. A result that has one of 2^32 values counts as an end at the begin,
 * which changes nothing: it only keeps the compiler from dropping the computation. */
static const char stamped_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry stamped_%u(.param .u64 turns, .param .u64 begin, .param .u64 end)\n{\n.reg .u64 %%t<5>;\n"
    ".reg .u32 %%r<2>;\n.reg .pred %%p<3>;\nld.param.u64 %%t0, [turns];\nld.param.u64 %%t1, [begin];\n"
    "ld.param.u64 %%t2, [end];\nmov.u32 %%r0, %%tid.x;\nsetp.eq.u32 %%p0, %%r0, 0;\nmov.u64 %%t3, %%globaltimer;\n"
    "@%%p0 red.global.min.u64 [%%t1], %%t3;\n"
    "AGAIN:\nmad.lo.u32 %%r0, %%r0, 1664525, 1013904223;\nsub.u64 %%t0, %%t0, 1;\nsetp.ne.u64 %%p1, %%t0, 0;\n"
    "@%%p1 bra AGAIN;\nsetp.eq.u32 %%p2, %%r0, 3735928559;\n@%%p2 red.global.max.u64 [%%t2], %%t3;\nbar.sync 0;\n"
    "mov.u64 %%t4, %%globaltimer;\n@%%p0 red.global.max.u64 [%%t2], %%t4;\nret;\n}\n";

/* Waits until the first word is `value` or more, and writes the card's clock behind it. */
static const char clock_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry clock_1(.param .u64 words, .param .u32 value)\n{\n"
    ".reg .u64 %t<2>;\n.reg .u32 %r<2>;\n.reg .pred %p;\nld.param.u64 %t0, [words];\nld.param.u32 %r0, [value];\n"
    "AGAIN:\nld.volatile.u32 %r1, [%t0];\nsetp.lt.u32 %p, %r1, %r0;\n@%p bra AGAIN;\nmov.u64 %t1, %globaltimer;\n"
    "st.volatile.u64 [%t0+8], %t1;\nmembar.sys;\nret;\n}\n";

uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

bool kernels_start(void) {
    CUcontext context;
    return calls_open() && DO(cuInit, 0) && DO(cuDevicePrimaryCtxRetain, &context, 0) && DO(cuCtxSetCurrent, context);
}

bool kernels_await_begin(bool is_ready, uint64_t *from) {
    char line[LINE_SIZE];
    printf("{\"ready\":%s,\"result\":%d,\"function\":\"%s\"}\n", is_ready ? "true" : "false", (int)failure.result,
           failure.function);
    (void)fflush(stdout);
    bool has_begin = is_ready && fgets(line, sizeof line, stdin);
    if (has_begin) *from = strtoull(line, NULL, 10);
    return has_begin;
}

static bool load(struct kernel *out, const char *code, const char *kind, unsigned us) {
    char name[NAME_SIZE];
    CUmodule module;
    int units = 1;
    (void)snprintf(name, sizeof name, "%s_%u", kind, us);
    (void)DO(cuDeviceGetAttribute, &units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    *out = (struct kernel){.blocks = (unsigned)units * BLOCKS_PER_SM};
    return DO(cuModuleLoadData, &module, code) && DO(cuModuleGetFunction, &out->function, module, name);
}

bool kernel_spin(struct kernel *out, unsigned us) {
    char code[TEXT_SIZE];
    (void)snprintf(code, sizeof code, spin_text, us, us);
    return load(out, code, "spin", us);
}

bool kernel_collective(struct kernel *out, unsigned ranks, unsigned us) {
    char code[TEXT_SIZE];
    char kind[NAME_SIZE];
    (void)snprintf(code, sizeof code, collective_text, ranks, us, ranks, us);
    (void)snprintf(kind, sizeof kind, "collective%u", ranks);
    return load(out, code, kind, us);
}

bool kernel_collective_launch(const struct kernel *kernel, CUstream stream, struct collective_round of) {
    void *parameters[] = {&of.group, &of.value, &of.words, &of.rank};
    return DO(cuLaunchKernel, kernel->function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

bool kernel_await(CUfunction *out, unsigned timeout_ms) {
    char code[TEXT_SIZE];
    char name[NAME_SIZE];
    CUmodule module;
    (void)snprintf(code, sizeof code, await_text, timeout_ms, timeout_ms);
    (void)snprintf(name, sizeof name, "await%u_0", timeout_ms);
    return DO(cuModuleLoadData, &module, code) && DO(cuModuleGetFunction, out, module, name);
}

bool kernel_await_launch(CUfunction kernel, CUstream stream, volatile uint32_t *word, uint32_t value) {
    void *parameters[] = {&word, &value};
    return DO(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* The shortest time of TRIES launches. */
static bool time_of(const struct kernel *kernel, float *ms) {
    CUevent begin;
    CUevent end;
    if (!DO(cuEventCreate, &begin, 0) || !DO(cuEventCreate, &end, 0)) return false;
    *ms = 0;
    for (int i = 0; i < TRIES; i++) {
        float one = 0;
        if (!DO(cuEventRecord, begin, NULL) || !kernel_launch(kernel, NULL, ORDINARY) ||
            !DO(cuEventRecord, end, NULL) || !DO(cuEventSynchronize, end) || !DO(cuEventElapsedTime, &one, begin, end))
            return false;
        *ms = i == 0 || one < *ms ? one : *ms;
    }
    return DO(cuEventDestroy_v2, begin) && DO(cuEventDestroy_v2, end);
}

/* Measures the difference of two lengths, because each launch has a constant part. On the simulated driver both lengths
 * take what the name says, and the result is 1. */
static bool measure_loops(struct kernel *out, double *per_ms) {
    float once = 0;
    float twice = 0;
    out->loops = FIRST_LOOPS;
    if (!time_of(out, &once)) return false;
    out->loops = 2 * FIRST_LOOPS;
    if (!time_of(out, &twice)) return false;
    *per_ms = twice > once ? (double)FIRST_LOOPS / (double)(twice - once) : 1;
    return true;
}

bool kernel_work(struct kernel *out, unsigned us) {
    char code[TEXT_SIZE];
    const char *known = getenv("BENCH_LOOPS");
    double per_ms = known != NULL ? strtod(known, NULL) : 0;
    (void)snprintf(code, sizeof code, work_text, us);
    if (!load(out, code, "work", us) || (known == NULL && !measure_loops(out, &per_ms))) return false;
    out->loops = (uint64_t)(per_ms * us / 1e3) + 1;
    return true;
}

bool kernel_stamped(struct kernel *out, unsigned us) {
    char code[TEXT_SIZE];
    struct kernel work;
    (void)snprintf(code, sizeof code, stamped_text, us);
    if (!kernel_work(&work, us) || !load(out, code, "stamped", us)) return false;
    out->loops = work.loops;
    return true;
}

bool kernel_stamped_launch(const struct kernel *kernel, CUstream stream, CUdeviceptr begin, CUdeviceptr end) {
    uint64_t loops = kernel->loops;
    void *parameters[] = {&loops, &begin, &end};
    return DO(cuLaunchKernel, kernel->function, kernel->blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL);
}

/* The host's time from setting the first word to seeing the card's clock in the second one. */
static bool ask_clock(CUfunction kernel, volatile uint64_t *words, uint32_t value, uint64_t *taken, int64_t *ahead) {
    void *parameters[] = {&words, &value};
    words[1] = 0;
    if (!DO(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL)) return false;
    uint64_t arrived = now() + CLOCK_ARRIVES_NS;
    while (now() < arrived) continue;
    uint64_t begun = now();
    words[0] = value;
    while (words[1] == 0 && now() - begun < CLOCK_TIMEOUT_NS) continue;
    uint64_t seen = now();
    *taken = seen - begun;
    *ahead = (int64_t)words[1] - (int64_t)(begun + *taken / 2);
    return words[1] != 0 && DO(cuCtxSynchronize);
}

bool kernels_clock_difference(int64_t *ns) {
    CUmodule module;
    CUfunction kernel;
    void *memory = NULL;
    uint64_t shortest = UINT64_MAX;
    if (!DO(cuModuleLoadData, &module, clock_text) || !DO(cuModuleGetFunction, &kernel, module, "clock_1") ||
        !DO(cuMemAllocHost_v2, &memory, 2 * sizeof(uint64_t)))
        return false;
    *(volatile uint64_t *)memory = 0;
    for (uint32_t i = 1; i <= CLOCK_TRIES; i++) {
        uint64_t taken = 0;
        int64_t ahead = 0;
        if (!ask_clock(kernel, memory, i, &taken, &ahead)) return false;
        if (taken < shortest) *ns = ahead;
        if (taken < shortest) shortest = taken;
    }
    return DO(cuMemFreeHost, memory);
}

bool kernel_launch(const struct kernel *kernel, CUstream stream, enum way way) {
    uint64_t loops = kernel->loops;
    void *parameters[] = {&loops};
    void **given = loops > 0 ? parameters : NULL;
    if (way == PER_THREAD)
        return DO(cuLaunchKernel_ptsz, kernel->function, kernel->blocks, 1, 1, THREADS, 1, 1, 0, NULL, given, NULL);
    if (way == COOPERATIVE)
        return DO(cuLaunchCooperativeKernel, kernel->function, kernel->blocks, 1, 1, THREADS, 1, 1, 0, stream, given);
    return DO(cuLaunchKernel, kernel->function, kernel->blocks, 1, 1, THREADS, 1, 1, 0, stream, given, NULL);
}
