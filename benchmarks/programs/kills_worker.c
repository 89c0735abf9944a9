/* What a worker of kills.c does until it is killed. */
#include "kills.h"

#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "classes/classes.h"
#include "processes.h"

enum { MOST_HELD = 8, UNIT = 2 << 20, MOST_UNITS = 16 };

/* All of these cost what is asked, so that what is held can be compared with what is charged. */
static const char *const mixed[] = {"plain", "vmm handle", "pitch", "vmm", "managed", "async"};
enum { MIXED = sizeof mixed / sizeof *mixed, ASYNC = MIXED - 1 };

static struct holding holdings[MOST_HELD];
static size_t count;

void add(uint64_t *figure, uint64_t more) { __atomic_fetch_add(figure, more, __ATOMIC_RELAXED); }

void keep_longest(uint64_t *longest, uint64_t took) {
    if (took > *longest) *longest = took;
}

static bool take(struct place *place, const char *name, size_t bytes) {
    holdings[count] = (struct holding){.class = find_class(name), .bytes = bytes};
    forget_failure();
    uint64_t begun = now_ns(), spent = calls_spent_ns();
    bool taken = holdings[count].class->take(&holdings[count]);
    uint64_t took = now_ns() - begun;
    keep_longest(&place->longest_ns, took);
    keep_longest(&place->longest_outside_ns, took - (calls_spent_ns() - spent));
    add(taken ? &board->taken : &board->refused, 1);
    if (!taken && failure.result != CUDA_ERROR_OUT_OF_MEMORY) add(&board->wrong, 1);
    count += taken;
    return taken;
}

static void give(size_t which) {
    holdings[which].class->give(&holdings[which]);
    holdings[which] = holdings[--count];
}

static bool is_any_in_need(void) { return __atomic_load_n(&board->in_need, __ATOMIC_RELAXED) != 0; }

static bool should_give(unsigned *seed) { return count == MOST_HELD || is_any_in_need() || rand_r(seed) % 2; }

static void work(struct place *place, unsigned *seed) {
    if (count > 0 && should_give(seed))
        give((size_t)rand_r(seed) % count);
    else if (is_any_in_need())
        usleep(PAUSE_US);
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

/* A context is large, and would never fit while the others take whatever is free: they make room for it. */
static void start_in_time(void) {
    if (start_cuda()) return;
    add(&board->in_need, 1);
    while (!start_cuda()) usleep(PAUSE_US);
    add(&board->in_need, (uint64_t)-1);
}

int serve(struct place *place, unsigned seed) {
    start_in_time();
    __atomic_store_n(&place->is_working, true, __ATOMIC_RELEASE);
    for (;;) {
        enum order order = __atomic_load_n(&board->order, __ATOMIC_ACQUIRE);
        if (order == WORK)
            work(place, &seed);
        else
            stop(place, order);
    }
}
