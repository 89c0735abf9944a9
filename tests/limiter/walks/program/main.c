/* A walk: a program that makes random calls of the driver, the same ones for the same seed.
 *
 *     walk SEED ROUNDS THREADS STEPS [tight] [child] [signals] [query] [exec] [context]
 *     walk import HANDLE
 *     walk await HANDLE
 *     walk repeat STEP COUNT SECONDS
 *
 * Each round starts THREADS threads, which take STEPS steps each with objects of their own, and ends all that they made.
 * Standard output gets a line for each call, `THREAD FUNCTION RESULT`, which depends on the seed only, and lines that
 * begin with `figure`: what the process holds after a round. Exit code 1, with a line on standard error: the card
 * worked in a wrong order, or a promise of the driver's broke.
 *
 * repeat: takes one step, by its name, so often, or for so long; prints figures from the hundredth time on, ten times.
 *
 * tight: memory may run out. signals: a timer interrupts system calls. query: functions are found by cuGetProcAddress.
 * exec: at its end the program replaces itself with one more walk. context: a context takes memory. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "walk.h"


/* limiter/src/books/physical/descriptors.c inspects a descriptor by its number, which another thread may have closed and reused
 * meanwhile; the inspection recognises that, so this race is no error. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:file_id"; }

struct options options;

static struct walker walkers[WALKERS];
static CUcontext primary;
static uint32_t *all_words;

static void tick(int number) { (void)number; }

static void interrupt_every(long us) {
    struct sigaction action = {.sa_handler = tick};
    struct itimerval timer = {{0, us}, {0, us}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static const struct step *const LISTS[] = {memory_steps,  pool_steps,    work_steps,
                                           graph_steps, context_steps, process_steps, shared_event_steps};

static unsigned weight_of_all(void) {
    unsigned sum = 0;
    for (size_t list = 0; list < sizeof LISTS / sizeof *LISTS; list++)
        for (const struct step *step = LISTS[list]; step->name; step++) sum += step->weight;
    return sum;
}

static const struct step *step_at(unsigned weight) {
    for (size_t list = 0; list < sizeof LISTS / sizeof *LISTS; list++)
        for (const struct step *step = LISTS[list]; step->name; step++) {
            if (weight < step->weight) return step;
            weight -= step->weight;
        }
    return NULL;
}

static void *walk(void *argument) {
    struct walker *walker = argument;
    unsigned all = weight_of_all();
    home_make(walker, &walker->homes[0]);
    home_enter(walker, &walker->homes[0]);
    for (unsigned i = 0; i < options.steps; i++) {
        step_at(next(walker, all))->take(walker);
        order_check(walker);
    }
    for (unsigned i = HOMES; i-- > 0;)
        if (walker->homes[i].is_there) home_end(walker, &walker->homes[i], false);
    return NULL;
}

static unsigned entries(const char *folder) {
    unsigned count = 0;
    DIR *opened = opendir(folder);
    while (opened && readdir(opened)) count++;
    if (opened) closedir(opened);
    return count - 3; /* ".", ".." and, of descriptors, the one of the folder itself */
}

static unsigned mappings(void) {
    unsigned lines = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    for (int byte; file && (byte = getc(file)) != EOF;) lines += byte == '\n';
    if (file) (void)fclose(file);
    return lines;
}

static unsigned long resident_kib(void) {
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lu %lu", &size, &resident) != 2) resident = 0;
    if (file) (void)fclose(file);
    return resident * 4;
}

static size_t charged(void) {
    size_t free = 0, total = 0;
    return cuda.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS ? total - free : 0;
}

/* The charge before the first round. A context whose size could not be measured, because calls of another process were
 * open beside it, is charged by a later measurement. */
static size_t charged_at_first(bool has_context_memory) {
    for (int tries = 0; has_context_memory && tries < 100 && charged() == 0; tries++) usleep(30000);
    return charged();
}

/* What pools and graphs keep for later is no leak. */
static void empty_pools(void) {
    CUmemoryPool pool;
    cuda.cuCtxSynchronize();
    for (CUdevice device = 0; device < 2; device++) {
        cuda.cuDeviceGraphMemTrim(device);
        if (cuda.cuDeviceGetDefaultMemPool(&pool, device) == CUDA_SUCCESS) cuda.cuMemPoolTrimTo(pool, 0);
    }
}

static void print_figures(unsigned round, size_t first) {
    for (int tries = 0; round > 0 && tries < 300 && charged() != first; tries++) usleep(30000);
    (void)printf("figure %u charged %zu descriptors %u threads %u mappings %u resident %lu\n", round, charged(),
                 entries("/proc/self/fd"), entries("/proc/self/task") + 1, mappings(), resident_kib());
}

/* All contexts that could write to the words have ended, or are idle. */
static void clear_words(void) {
    for (unsigned i = 0; i < WALKERS * WORDS_A_WALKER; i++) __atomic_store_n(&all_words[i], 0, __ATOMIC_RELAXED);
}

/* What is printed after a round is not interrupted: stdio loses what an interrupted write did not take. */
static void run_round(unsigned long long seed, unsigned round) {
    if (options.has_signals) interrupt_every(3000);
    char *text[WALKERS];
    size_t length[WALKERS];
    for (unsigned i = 0; i < options.threads; i++) {
        uint32_t *words = all_words + i * WORDS_A_WALKER;
        walkers[i] = (struct walker){.number = i, .chance = (seed * 1000 + round) * 100 + i, .words = words};
        walkers[i].trace = open_memstream(&text[i], &length[i]);
    }
    for (unsigned i = 0; i < options.threads; i++) pthread_create(&walkers[i].id, NULL, walk, &walkers[i]);
    for (unsigned i = 0; i < options.threads; i++) pthread_join(walkers[i].id, NULL);
    if (options.has_signals) interrupt_every(0);
    for (unsigned i = 0; i < options.threads; i++) {
        (void)fclose(walkers[i].trace);
        (void)fwrite(text[i], 1, length[i], stdout);
        free(text[i]);
    }
    (void)fflush(stdout);
}

static void begin(void) {
    if (cuda.cuInit(0) != CUDA_SUCCESS) exit(3);
    if (cuda.cuDevicePrimaryCtxRetain(&primary, 0) != CUDA_SUCCESS) exit(4);
    cuda.cuCtxSetCurrent(primary);
    if (cuda.cuMemHostAlloc((void **)&all_words, WALKERS * WORDS_A_WALKER * sizeof *all_words,
                            CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS)
        exit(5);
    clear_words();
}

static const struct step *step_named(const char *name) {
    for (size_t list = 0; list < sizeof LISTS / sizeof *LISTS; list++)
        for (const struct step *step = LISTS[list]; step->name; step++)
            if (strcmp(step->name, name) == 0) return step;
    return NULL;
}

/* Makes, and ends, objects that the repeated step may use. */
static void prepare(struct walker *walker) {
    static const char *const STEPS[] = {"plain", "host", "pooled", "stream", "launch", "record", "library", "graph", "visit"};
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) step_named(STEPS[i])->take(walker);
}

/* Between figures the walker ends all that it made, so that they can be compared. */
static void repeat_part(struct walker *walker, const struct step *step, unsigned count, time_t until) {
    walker->words_used = walker->calls_used = 0;
    home_make(walker, &walker->homes[0]);
    home_enter(walker, &walker->homes[0]);
    for (unsigned i = 0; i < count && time(NULL) < until; i++) {
        if (walker->calls_used == CALLS) {
            cuda.cuCtxSynchronize();
            walker->calls_used = 0;
        }
        step->take(walker);
        if (i % 50 == 0) prepare(walker);
        if (step == step_named("leave")) step_named("visit")->take(walker);
        rewind(walker->trace);
    }
    for (unsigned i = HOMES; i-- > 0;)
        if (walker->homes[i].is_there) home_end(walker, &walker->homes[i], false);
    empty_pools();
    clear_words();
}

static int repeat(const char *name, unsigned count, unsigned seconds) {
    char *text;
    size_t length;
    static struct walker walker;
    const struct step *step = step_named(name);
    if (!step) return 2;
    begin();
    opener_start(all_words, WALKERS * WORDS_A_WALKER / WORDS_A_TRACK);
    walker = (struct walker){.chance = 1, .words = all_words, .trace = open_memstream(&text, &length)};
    size_t first = charged();
    time_t until = time(NULL) + (time_t)seconds;
    repeat_part(&walker, step, 100, until);
    print_figures(0, first);
    for (unsigned part = 1; part <= 10; part++) {
        repeat_part(&walker, step, count / 10, until);
        (void)printf("calls %llu ", walker.calls);
        print_figures(part, first);
        (void)fflush(stdout);
    }
    opener_end();
    (void)fclose(walker.trace);
    free(text);
    return wrong;
}

static bool has(char **arguments, const char *wanted) {
    while (*arguments && strcmp(*arguments, wanted) != 0) arguments++;
    return *arguments != NULL;
}

/* Whatever the process holds now is left to its next image. */
static void replace(char **arguments) {
    char seed[24];
    char *again[16] = {arguments[0], seed};
    unsigned count = 2;
    for (char **word = arguments + 2; *word && count < 15; word++)
        if (strcmp(*word, "exec") != 0) again[count++] = *word;
    (void)snprintf(seed, sizeof seed, "%llu", strtoull(arguments[1], NULL, 10) + 1);
    CUdeviceptr left;
    (void)printf("0 cuMemAlloc_v2 %d\n", (int)cuda.cuMemAlloc_v2(&left, 5 * MIB));
    (void)fflush(stdout);
    interrupt_every(0); /* an exec keeps the timer, and not the handler */
    execv("/proc/self/exe", again);
    exit(8);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    find_functions(has(arguments, "query"));
    if (strcmp(arguments[1], "import") == 0) return import_memory(arguments[2]);
    if (strcmp(arguments[1], "await") == 0) return await_event(arguments[2]);
    if (count < 5) return 2;
    if (strcmp(arguments[1], "repeat") == 0)
        return repeat(arguments[2], (unsigned)atoi(arguments[3]), (unsigned)atoi(arguments[4]));
    options = (struct options){.threads = (unsigned)atoi(arguments[3]),
                               .steps = (unsigned)atoi(arguments[4]),
                               .is_tight = has(arguments, "tight"),
                               .is_child = has(arguments, "child"),
                               .has_signals = has(arguments, "signals")};
    if (options.threads > WALKERS) return 2;
    if (options.has_signals) interrupt_every(3000);
    begin();
    opener_start(all_words, WALKERS * WORDS_A_WALKER / WORDS_A_TRACK);
    size_t first = charged_at_first(has(arguments, "context"));
    if (!options.is_child) print_figures(0, first);
    for (unsigned round = 1; round <= (unsigned)atoi(arguments[2]); round++) {
        run_round(strtoull(arguments[1], NULL, 10), round);
        empty_pools();
        clear_words();
        if (!options.is_child) print_figures(round, first);
    }
    opener_end();
    if (has(arguments, "exec") && !wrong) replace(arguments);
    return wrong;
}
