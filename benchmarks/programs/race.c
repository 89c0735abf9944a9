/* Processes that race for the last bytes: `race PROCESSES ROUNDS SEED SECONDS`.
 *
 * Prints {"ready":true} once all processes have a context, and waits for a line. In each round all processes allocate
 * at the same moment until the smallest size is refused, and then free everything. The rounds end when the seconds are
 * over. Prints the most and the least bytes that all held together at the end of a round:
 *
 *   {"rounds":COUNT,"most":BYTES,"least":BYTES,"refusals":COUNT,"wrong":COUNT}
 *
 * wrong = results that are neither success nor CUDA_ERROR_OUT_OF_MEMORY. Exits with 1 when a process could not start or
 * died. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "classes/classes.h"
#include "processes.h"

enum { MOST_HELD = 4096, UNIT = 2 << 20, MOST_UNITS = 32 };

static struct board {
    pthread_barrier_t all; /* all processes and the parent */
    pthread_barrier_t racing;
    uint64_t deadline_ns; /* set by the parent before the start */
    uint64_t held;        /* atomic: bytes of all processes in this round */
    uint64_t most;        /* this and the next three: set by the first process, between barriers */
    uint64_t least;
    int rounds;
    bool is_over;
    uint64_t refusals; /* atomic */
    uint64_t wrong;    /* atomic */
} *board;

static struct holding holdings[MOST_HELD];
static size_t count;

static void meet(void) { pthread_barrier_wait(&board->racing); }

/* Half of the processes allocate by pointer, half by handle: both cost the size asked for. */
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
    board->rounds++;
}

static bool is_last(int rounds) { return board->rounds == rounds || now_ns() > board->deadline_ns; }

static void play_round(const struct class *class, bool is_first, unsigned *seed) {
    fill(class, seed);
    meet();
    if (is_first) note();
    meet();
    give_all();
}

static int race(int index, int rounds, unsigned seed) {
    const struct class *class = index % 2 ? find_class("vmm handle") : find_class("plain");
    if (!start_cuda()) return 1;
    take(class, UNIT);
    give_all();
    pthread_barrier_wait(&board->all); /* all are ready */
    pthread_barrier_wait(&board->all); /* the parent starts the race */
    for (;;) {
        if (index == 0) board->is_over = is_last(rounds);
        meet();
        if (board->is_over) return 0;
        play_round(class, index == 0, &seed);
    }
}

static void make_barrier(pthread_barrier_t *barrier, unsigned processes) {
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier, &shared, processes);
}

static void make_board(unsigned processes) {
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board->least = UINT64_MAX;
    make_barrier(&board->all, processes + 1);
    make_barrier(&board->racing, processes);
}

/* A process that dies never reaches the barrier, and the others would wait for ever: then all end. */
static void await(int options) {
    int status;
    while (waitpid(-1, &status, options) > 0)
        if (status != 0) _exit(1);
}

static void await_the_dead(int number) {
    (void)number;
    await(WNOHANG);
}

static void lead(uint64_t seconds) {
    pthread_barrier_wait(&board->all);
    board->refusals = board->wrong = board->held = 0;
    say("{\"ready\":true}");
    hear();
    board->deadline_ns = now_ns() + seconds * 1000000000;
    pthread_barrier_wait(&board->all);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int processes = atoi(argv[1]);
    int rounds = atoi(argv[2]);
    make_board((unsigned)processes);
    signal(SIGCHLD, await_the_dead);
    for (int index = 0; index < processes; index++)
        if (fork_child() == 0) _exit(race(index, rounds, (unsigned)(atoi(argv[3]) + index)));
    lead((uint64_t)atoi(argv[4]));
    await(0);
    say("{\"rounds\":%d,\"most\":%llu,\"least\":%llu,\"refusals\":%llu,\"wrong\":%llu}", board->rounds,
        (unsigned long long)board->most, (unsigned long long)board->least, (unsigned long long)board->refusals,
        (unsigned long long)board->wrong);
    return 0;
}
