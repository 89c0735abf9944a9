/* Workers that allocate and free by mixed classes, and are killed: `kills WORKERS SEED [member]`. With the last word
 * none is of unified memory, which members of a group in space are refused.
 *
 * Prints {"ready":true} once all workers have a context, then executes commands from standard input:
 *
 *   kill COUNT     kills COUNT workers at random instants and starts new ones: {"killed":COUNT}
 *   hold           the workers pause and keep their memory (answer below)
 *   give           the workers pause and free their memory (answer below)
 *
 *   {"held":BYTES,"taken":COUNT,"refused":COUNT,"wrong":COUNT,"longest_ns":NS,"longest_outside_ns":NS}
 *
 * wrong = results that are neither success nor out of memory, and workers that died without being killed; longest_ns =
 * the longest allocation; longest_outside_ns = the same without the time in the driver's own functions, when
 * driver_time.c measures that. */
#include "kills.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processes.h"

enum { MOST_DYING = 1, MOST_WAIT_US = 20000, LINE_SIZE = 64 };

struct board *board;

static int workers;
static unsigned seed;
static pid_t children[MOST_WORKERS];
static bool is_dying[MOST_WORKERS];
static int dying;

static unsigned chance(void) { return (unsigned)rand_r(&seed); }

static bool is_working(int worker) { return __atomic_load_n(&board->slots[worker].is_working, __ATOMIC_ACQUIRE); }

static void start(int worker) {
    unsigned its_seed = chance();
    board->slots[worker].is_working = is_dying[worker] = false;
    children[worker] = fork_child();
    if (children[worker] == 0) _exit(serve(&board->slots[worker], its_seed));
}

/* Replaces a worker that has died; false when none has. A GPU needs a while to clean up after a dead process. */
static bool replace(int options) {
    pid_t dead = waitpid(-1, NULL, options);
    int worker = 0;
    if (dead <= 0) return false;
    while (children[worker] != dead) worker++;
    add(&board->wrong, !is_dying[worker]);
    dying -= is_dying[worker];
    start(worker);
    return true;
}

static void await_all(bool (*is_so)(int)) {
    for (int worker = 0; worker < workers; worker++)
        while (!is_so(worker))
            if (!replace(WNOHANG)) usleep(PAUSE_US);
}

static int find_victim(void) {
    int worker = (int)(chance() % (unsigned)workers);
    while (!is_working(worker)) {
        worker = (worker + 1) % workers;
        if (!replace(WNOHANG)) usleep(PAUSE_US / MOST_WORKERS);
    }
    return worker;
}

static void kill_one(void) {
    usleep(chance() % MOST_WAIT_US);
    while (dying == MOST_DYING) replace(0);
    int worker = find_victim();
    is_dying[worker] = true;
    dying++;
    board->slots[worker].is_working = false;
    kill(children[worker], SIGKILL);
}

static void kill_many(int count) {
    __atomic_store_n(&board->order, WORK, __ATOMIC_RELEASE);
    for (int killed = 0; killed < count; killed++) kill_one();
    while (dying > 0) replace(0);
    say("{\"killed\":%d}", count);
}

static bool has_obeyed(int worker) {
    return __atomic_load_n(&board->slots[worker].obeyed, __ATOMIC_ACQUIRE) == board->order;
}

static void command(enum order order) {
    await_all(is_working);
    for (int worker = 0; worker < workers; worker++) board->slots[worker].obeyed = NONE;
    __atomic_store_n(&board->order, order, __ATOMIC_RELEASE);
    await_all(has_obeyed);
}

static void report(void) {
    uint64_t held = 0;
    uint64_t longest = 0, outside = 0;
    for (int worker = 0; worker < workers; worker++) {
        const struct slot *slot = &board->slots[worker];
        held += slot->held;
        keep_longest(&longest, slot->longest_ns);
        keep_longest(&outside, slot->longest_outside_ns);
    }
    say("{\"held\":%llu,\"taken\":%llu,\"refused\":%llu,\"wrong\":%llu,\"longest_ns\":%llu,\"longest_outside_ns\":%"
        "llu}",
        (unsigned long long)held, (unsigned long long)board->taken, (unsigned long long)board->refused,
        (unsigned long long)board->wrong, (unsigned long long)longest, (unsigned long long)outside);
}

static void obey(const char *line) {
    int count;
    if (sscanf(line, "kill %d", &count) == 1) {
        kill_many(count);
        return;
    }
    command(strncmp(line, "give", 4) == 0 ? GIVE : HOLD);
    report();
}

int main(int argc, char **argv) {
    char line[LINE_SIZE];
    if (argc < 3 || argc > 4 || atoi(argv[1]) > MOST_WORKERS) return 2;
    workers = atoi(argv[1]);
    seed = (unsigned)atoi(argv[2]);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board->order = HOLD;
    board->is_member = argc == 4;
    for (int worker = 0; worker < workers; worker++) start(worker);
    await_all(is_working);
    say("{\"ready\":true}");
    while (fgets(line, sizeof line, stdin)) obey(line);
    return 0;
}
