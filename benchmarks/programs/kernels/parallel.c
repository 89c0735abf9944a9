/* A data-parallel job on several cards, in one process: each step is work on each card, and then a collective.
 *
 *   parallel KIND WORK_US LAUNCHES COLLECTIVE_US CARDS SECONDS [RANKS FIRST GROUP]
 *
 * WORK_US: of each card, or a list with commas, of the cards one after the other; the last one is for the rest, too.
 * KIND: serial = one thread launches for one card after the other; threads = a thread for each card; apart = a thread for
 * each card, and no card has access to another one's memory. A step is LAUNCHES kernels of WORK_US together and a
 * collective on each card, whose kernels spin until those of all ranks have begun, and then for COLLECTIVE_US. The host
 * is up to two steps ahead. RANKS: of the job, by default CARDS; this process has those from FIRST on, on the devices of
 * these numbers. Several processes of one job have the same GROUP, a number that no job had before: they share a file of
 * that name in /dev/shm.
 *
 * Prints {"ready":...}, waits for a line with a begin time (CLOCK_MONOTONIC, ns) and starts at once. At the end prints
 * what the process's first card did in the SECONDS after the begin time: {"steps":...,"ns":...,"times_us":[...]}: when
 * each step ended. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kernels.h"

enum { MOST_CARDS = 8, AHEAD = 2, MOST = 1 << 16, PATH_SIZE = 64, PAGE = 4096 };
enum { WORDS = 256, MEMORY_SIZE = 1 << 21, POLL_US = 1000, MOST_POLLS = 30000 };

#define TAIL_NS 100000000ULL

struct card {
    unsigned rank;
    CUcontext context;
    CUstream stream;
    CUevent ring[AHEAD];
    struct kernel work, together;
    uint32_t step;
};

/* Memory of a rank's card, for the other processes. */
struct rank_memory {
    CUipcMemHandle handle;
    uint32_t is_there;
};

static struct {
    unsigned work_us[MOST_CARDS], launches, collective_us, cards, ranks, first;
    uint64_t group;
    double seconds;
    struct card card[MOST_CARDS];
    void *words; /* of each rank: the number of its last collective whose kernel has begun */
    uint64_t from, until;
    long times_us[MOST];
    unsigned count;
} job;

static bool share_words(void) {
    char path[PATH_SIZE];
    if (job.ranks == job.cards) return DO(cuMemHostAlloc, &job.words, PAGE, CU_MEMHOSTALLOC_PORTABLE);
    (void)snprintf(path, sizeof path, "/dev/shm/%llu", (unsigned long long)job.group);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, PAGE) != 0) return false;
    job.words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    return job.words != MAP_FAILED && DO(cuMemHostRegister_v2, job.words, PAGE, CU_MEMHOSTREGISTER_PORTABLE);
}

static bool prepare_card(struct card *card) {
    if (!DO(cuDevicePrimaryCtxRetain, &card->context, (CUdevice)card->rank) || !DO(cuCtxSetCurrent, card->context) ||
        !DO(cuStreamCreate, &card->stream, CU_STREAM_NON_BLOCKING) ||
        !kernel_work(&card->work, job.work_us[card->rank] / job.launches) ||
        !kernel_collective(&card->together, job.ranks, job.collective_us))
        return false;
    for (int i = 0; i < AHEAD; i++)
        if (!DO(cuEventCreate, &card->ring[i], CU_EVENT_DISABLE_TIMING)) return false;
    return true;
}

/* Behind the words. */
static struct rank_memory *memory_of(unsigned rank) { return (struct rank_memory *)((char *)job.words + WORDS) + rank; }

static bool offer_memory(const struct card *card) {
    CUdeviceptr own;
    struct rank_memory *memory = memory_of(card->rank);
    if (!DO(cuCtxSetCurrent, card->context) || !DO(cuMemAlloc_v2, &own, MEMORY_SIZE) ||
        !DO(cuIpcGetMemHandle, &memory->handle, own))
        return false;
    __atomic_store_n(&memory->is_there, 1, __ATOMIC_RELEASE);
    return true;
}

/* As NCCL does in processes of their own. */
static bool open_memory(const struct card *card, unsigned rank) {
    CUdeviceptr opened;
    const struct rank_memory *memory = memory_of(rank);
    for (int i = 0; i < MOST_POLLS && !__atomic_load_n(&memory->is_there, __ATOMIC_ACQUIRE); i++) (void)usleep(POLL_US);
    return DO(cuCtxSetCurrent, card->context) &&
           DO(cuIpcOpenMemHandle_v2, &opened, memory->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static bool join_processes(void) {
    bool is_done = true;
    for (unsigned i = 0; i < job.cards && is_done; i++) is_done = offer_memory(&job.card[i]);
    for (unsigned i = 0; i < job.cards; i++)
        for (unsigned rank = 0; rank < job.ranks && is_done; rank++)
            if (rank < job.first || rank >= job.first + job.cards) is_done = open_memory(&job.card[i], rank);
    return is_done;
}

static bool join_cards(void) {
    for (unsigned i = 0; i < job.cards; i++)
        for (unsigned other = 0; other < job.cards; other++)
            if (other != i && (!DO(cuCtxSetCurrent, job.card[i].context) ||
                               !DO(cuCtxEnablePeerAccess, job.card[other].context, 0)))
                return false;
    return true;
}

static bool prepare(bool are_joined) {
    for (unsigned i = 0; i < job.cards; i++) {
        job.card[i].rank = job.first + i;
        if (!prepare_card(&job.card[i])) return false;
    }
    return share_words() && (!are_joined || (join_cards() && (job.ranks == job.cards || join_processes())));
}

static void note_end(const struct card *card) {
    uint64_t ended = now();
    if (card->rank == job.first && ended >= job.from && ended <= job.until && job.count < MOST)
        job.times_us[job.count++] = (long)((ended - job.from) / 1000);
}

/* Waits for the last step but one, and launches the next one. */
static bool step(struct card *card) {
    CUevent event = card->ring[card->step % AHEAD];
    if (!DO(cuCtxSetCurrent, card->context)) return false;
    if (card->step >= AHEAD) {
        if (!DO(cuEventSynchronize, event)) return false;
        note_end(card);
    }
    for (unsigned i = 0; i < job.launches; i++)
        if (!kernel_launch(&card->work, card->stream, ORDINARY)) return false;
    struct collective_round of = {
        .group = job.group, .value = ++card->step, .words = job.words, .rank = card->rank};
    return kernel_collective_launch(&card->together, card->stream, of) && DO(cuEventRecord, event, card->stream);
}

static void *run_card(void *card) {
    while (step(card)) {
    }
    return NULL;
}

static void *run_all_cards(void *unused) {
    bool is_done = true;
    while (is_done)
        for (unsigned i = 0; i < job.cards && is_done; i++) is_done = step(&job.card[i]);
    return unused;
}

static bool start(void *(*run)(void *), void *argument) {
    pthread_t thread;
    return pthread_create(&thread, NULL, run, argument) == 0 && pthread_detach(thread) == 0;
}

static bool start_threads(bool is_serial) {
    if (is_serial) return start(run_all_cards, NULL);
    bool are_started = true;
    for (unsigned i = 0; i < job.cards; i++) are_started &= start(run_card, &job.card[i]);
    return are_started;
}

/* The program ends in the middle of a step: one of another process's ranks may be waited for. */
static void sleep_until_over(void) {
    uint64_t ns = job.until + TAIL_NS - now();
    (void)usleep((useconds_t)(ns / 1000));
}

static void print_result(void) {
    printf("{\"result\":%d,\"function\":\"%s\",\"steps\":%u,\"ns\":%.0f,\"times_us\":[", (int)failure.result,
           failure.function, job.count, job.seconds * 1e9);
    for (unsigned i = 0; i < job.count; i++) printf("%s%ld", i > 0 ? "," : "", job.times_us[i]);
    printf("]}\n");
    (void)fflush(stdout);
}

static void read_work(char *list) {
    for (unsigned rank = 0; rank < MOST_CARDS; rank++) {
        char *end;
        job.work_us[rank] = (unsigned)strtoul(list, &end, 10);
        if (*end == ',') list = end + 1;
    }
}

static bool read_arguments(int argc, char **argv) {
    if (argc < 7) return false;
    read_work(argv[2]);
    job.launches = (unsigned)strtoul(argv[3], NULL, 10);
    job.collective_us = (unsigned)strtoul(argv[4], NULL, 10);
    job.cards = (unsigned)strtoul(argv[5], NULL, 10);
    job.seconds = strtod(argv[6], NULL);
    job.ranks = argc > 7 ? (unsigned)strtoul(argv[7], NULL, 10) : job.cards;
    job.first = argc > 8 ? (unsigned)strtoul(argv[8], NULL, 10) : 0;
    job.group = argc > 9 ? strtoull(argv[9], NULL, 10) : (uint64_t)getpid();
    return job.launches > 0 && job.cards > 0 && job.ranks <= MOST_CARDS && job.first + job.cards <= job.ranks;
}

int main(int argc, char **argv) {
    if (!read_arguments(argc, argv)) return 2;
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    bool is_ready = calls_open() && DO(cuInit, 0) && prepare(strcmp(argv[1], "apart") != 0);
    if (!kernels_await_begin(is_ready, &job.from)) return 1;
    job.until = job.from + (uint64_t)(job.seconds * 1e9);
    if (!start_threads(strcmp(argv[1], "serial") == 0)) return 1;
    sleep_until_over();
    print_result();
    _exit(failure.result != CUDA_SUCCESS);
}
