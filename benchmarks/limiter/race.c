/* Processes that race for the last bytes: `race PROCESSES ROUNDS SEED`.
 *
 * Says {"ready":true} once all have a context, waits for a line, then in each round all allocate at the same moment
 * until the smallest is refused, and free everything. Answers with the most and the least that they held together at
 * the ends of the rounds:
 *
 *   {"most":BYTES,"least":BYTES,"refusals":COUNT,"wrong":COUNT}      wrong = answers that are neither success nor
 *                                                                     CUDA_ERROR_OUT_OF_MEMORY
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "classes.h"
#include "processes.h"

enum { MOST_HELD = 4096, UNIT = 2 << 20, MOST_UNITS = 32 };

static struct board {
    pthread_barrier_t barrier;
    uint64_t held; /* atomically: of all, at the end of this round */
    uint64_t most; /* by the first process, between barriers */
    uint64_t least;
    uint64_t refusals; /* atomically */
    uint64_t wrong;    /* atomically */
} *board;

static struct holding holdings[MOST_HELD];
static size_t count;

static void meet(void) { pthread_barrier_wait(&board->barrier); }

/* Half of the processes take memory by pointer, half by handle: both cost what was asked. */
static bool take(const struct class *class, size_t bytes) {
    holdings[count] = (struct holding){.class = class, .bytes = bytes};
    forget_failure();
    bool taken = class->take(&holdings[count]);
    count += taken;
    if (!taken) __atomic_fetch_add(&board->refusals, 1, __ATOMIC_RELAXED);
    if (!taken && failure.result != CUDA_ERROR_OUT_OF_MEMORY) __atomic_fetch_add(&board->wrong, 1, __ATOMIC_RELAXED);
    if (taken) __atomic_fetch_add(&board->held, bytes, __ATOMIC_RELAXED);
    return taken;
}

static void fill(const struct class *class, unsigned *seed) {
    while (count < MOST_HELD && take(class, UNIT * (1 + (size_t)rand_r(seed) % MOST_UNITS))) continue;
    while (count < MOST_HELD && take(class, UNIT)) continue;
}

static void give_all(void) {
    while (count > 0) {
        count--;
        holdings[count].class->give(&holdings[count]);
    }
}

static void note(void) {
    if (board->held > board->most) board->most = board->held;
    if (board->held < board->least) board->least = board->held;
    board->held = 0;
}

static int race(int index, int rounds, unsigned seed) {
    const struct class *class = index % 2 ? find_class("vmm handle") : find_class("plain");
    if (!start_cuda()) return 1;
    take(class, UNIT);
    give_all();
    meet(); /* all are ready */
    meet(); /* told to go */
    for (int round = 0; round < rounds; round++) {
        meet();
        fill(class, &seed);
        meet();
        if (index == 0) note();
        meet();
        give_all();
    }
    return 0;
}

static void make_board(unsigned processes) {
    pthread_barrierattr_t shared;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board->least = UINT64_MAX;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&board->barrier, &shared, processes + 1);
}

/* The parent meets with them where they are told to go; its count of rounds is theirs. */
static void lead(int rounds) {
    meet();
    board->refusals = board->wrong = board->held = 0;
    say("{\"ready\":true}");
    hear();
    for (int meeting = 0; meeting < 1 + 3 * rounds; meeting++) meet();
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int processes = atoi(argv[1]);
    int rounds = atoi(argv[2]);
    make_board((unsigned)processes);
    for (int index = 0; index < processes; index++)
        if (fork_child() == 0) _exit(race(index, rounds, (unsigned)(atoi(argv[3]) + index)));
    lead(rounds);
    while (wait(NULL) > 0) continue;
    say("{\"most\":%llu,\"least\":%llu,\"refusals\":%llu,\"wrong\":%llu}", (unsigned long long)board->most,
        (unsigned long long)board->least, (unsigned long long)board->refusals, (unsigned long long)board->wrong);
    return 0;
}
