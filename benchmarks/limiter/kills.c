/* Workers that take and give memory by mixed classes, and are killed: `kills WORKERS KILLS SEED`.
 *
 * Says {"ready":true} once all have a context and waits for a line. Then kills one of them at a random instant, so many
 * times, and starts another in its place. Afterwards the living stop with what they hold, and it says
 *
 *   {"held":BYTES,"taken":COUNT,"refused":COUNT,"wrong":COUNT,"longest_ns":NS}
 *
 * longest_ns = the longest that any call for memory took, measured by its caller. After another line they give
 * everything back and it says {"held":0}; after a third it ends. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "classes.h"
#include "processes.h"

enum { MOST_WORKERS = 64, MOST_HELD = 8, UNIT = 2 << 20, MOST_UNITS = 16, PAUSE_US = 1000, MOST_WAIT_US = 20000 };

/* All of these cost what is asked, so that what is held can be compared with what is charged. */
static const char *const mixed[] = {"plain", "vmm handle", "pitch", "vmm", "managed", "async"};
enum { MIXED = sizeof mixed / sizeof *mixed, ASYNC = MIXED - 1 };

enum order { NONE, WORK, HOLD, GIVE };

static struct board {
    enum order order; /* by the parent, atomically */
    struct place {
        bool working;      /* by its worker, atomically; cleared by the parent when it has killed it */
        enum order obeyed; /* by its worker, atomically; NONE again by the parent */
        uint64_t held;
        uint64_t longest_ns;
    } places[MOST_WORKERS];
    uint64_t taken; /* atomically */
    uint64_t refused;
    uint64_t wrong;
} *board;

static struct holding holdings[MOST_HELD];
static size_t count;
static pid_t children[MOST_WORKERS];

static void add(uint64_t *figure, uint64_t more) { __atomic_fetch_add(figure, more, __ATOMIC_RELAXED); }

static bool take(struct place *place, const char *name, size_t bytes) {
    holdings[count] = (struct holding){.class = find_class(name), .bytes = bytes};
    forget_failure();
    uint64_t begun = now_ns();
    bool taken = holdings[count].class->take(&holdings[count]);
    uint64_t took = now_ns() - begun;
    if (took > place->longest_ns) place->longest_ns = took;
    add(taken ? &board->taken : &board->refused, 1);
    if (!taken && failure.result != CUDA_ERROR_OUT_OF_MEMORY) add(&board->wrong, 1);
    count += taken;
    return taken;
}

static void give(size_t which) {
    holdings[which].class->give(&holdings[which]);
    holdings[which] = holdings[--count];
}

static void work(struct place *place, unsigned *seed) {
    bool is_full = count == MOST_HELD;
    if (is_full || (count > 0 && rand_r(seed) % 2))
        give((size_t)rand_r(seed) % count);
    else
        take(place, mixed[rand_r(seed) % MIXED], UNIT * (1 + (size_t)rand_r(seed) % MOST_UNITS));
}

/* A pool reserves by chunks of its own: what it gave is not counted. */
static void give_what_is_inexact(void) {
    for (size_t i = count; i-- > 0;)
        if (holdings[i].class == find_class(mixed[ASYNC])) give(i);
}

static void stop(struct place *place, enum order order) {
    give_what_is_inexact();
    while (order == GIVE && count > 0) give(count - 1);
    place->held = 0;
    for (size_t i = 0; i < count; i++) place->held += holdings[i].bytes;
    __atomic_store_n(&place->obeyed, order, __ATOMIC_RELEASE);
    usleep(PAUSE_US);
}

/* A context may be refused while the others hold the room for it: then another try is made. */
static int serve(struct place *place, unsigned seed) {
    while (!start_cuda()) usleep(PAUSE_US);
    __atomic_store_n(&place->working, true, __ATOMIC_RELEASE);
    for (;;) {
        enum order order = __atomic_load_n(&board->order, __ATOMIC_ACQUIRE);
        if (order == WORK)
            work(place, &seed);
        else
            stop(place, order);
    }
}

static void start(int worker, unsigned seed) {
    struct place *place = &board->places[worker];
    place->working = false;
    children[worker] = fork_child();
    if (children[worker] == 0) _exit(serve(place, seed));
}

static bool is_working(int worker) { return __atomic_load_n(&board->places[worker].working, __ATOMIC_ACQUIRE); }

static void await_all(int workers, bool (*is_so)(int)) {
    for (int worker = 0; worker < workers; worker++)
        while (!is_so(worker)) usleep(PAUSE_US);
}

static void kill_one(int workers, unsigned *seed) {
    usleep((unsigned)rand_r(seed) % MOST_WAIT_US);
    int worker = rand_r(seed) % workers;
    while (!is_working(worker)) worker = (worker + 1) % workers, usleep(PAUSE_US / (useconds_t)workers);
    kill(children[worker], SIGKILL);
    waitpid(children[worker], NULL, 0);
    start(worker, (unsigned)rand_r(seed));
}

static bool has_obeyed(int worker) {
    return __atomic_load_n(&board->places[worker].obeyed, __ATOMIC_ACQUIRE) == board->order;
}

static void command(int workers, enum order order) {
    for (int worker = 0; worker < workers; worker++) board->places[worker].obeyed = NONE;
    __atomic_store_n(&board->order, order, __ATOMIC_RELEASE);
    await_all(workers, has_obeyed);
}

static void report(int workers) {
    uint64_t held = 0;
    uint64_t longest = 0;
    for (int worker = 0; worker < workers; worker++) {
        held += board->places[worker].held;
        if (board->places[worker].longest_ns > longest) longest = board->places[worker].longest_ns;
    }
    say("{\"held\":%llu,\"taken\":%llu,\"refused\":%llu,\"wrong\":%llu,\"longest_ns\":%llu}", (unsigned long long)held,
        (unsigned long long)board->taken, (unsigned long long)board->refused, (unsigned long long)board->wrong,
        (unsigned long long)longest);
}

int main(int argc, char **argv) {
    if (argc != 4 || atoi(argv[1]) > MOST_WORKERS) return 2;
    int workers = atoi(argv[1]);
    unsigned seed = (unsigned)atoi(argv[3]);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board->order = HOLD;
    for (int worker = 0; worker < workers; worker++) start(worker, seed + (unsigned)worker);
    await_all(workers, is_working);
    say("{\"ready\":true}");
    hear();
    __atomic_store_n(&board->order, WORK, __ATOMIC_RELEASE);
    for (int killed = 0; killed < atoi(argv[2]); killed++) kill_one(workers, &seed);
    await_all(workers, is_working);
    command(workers, HOLD);
    report(workers);
    hear();
    command(workers, GIVE);
    report(workers);
    hear();
    return 0;
}
