/* The work of a worker of kills.c, until it is killed. */
#include "kills.h"

#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "classes/classes.h"
#include "processes.h"

enum { MOST_HELD = 8, UNIT = 2 << 20, MOST_UNITS = 16 };

/* Each of these classes costs the size asked for, so that sizes can be compared with charges. */
static const char *const mixed[] = {"plain", "vmm handle", "pitch", "vmm", "async", "managed"};
enum { MIXED = sizeof mixed / sizeof *mixed, MANAGED = MIXED - 1, ASYNC = MANAGED - 1 };

static struct holding holdings[MOST_HELD];
static size_t count;

void add(uint64_t *figure, uint64_t more) { __atomic_fetch_add(figure, more, __ATOMIC_RELAXED); }

void keep_longest(uint64_t *longest, uint64_t took) {
    if (took > *longest) *longest = took;
}

static bool take(struct slot *slot, const char *name, size_t bytes) {
    holdings[count] = (struct holding){.class = find_class(name), .bytes = bytes};
    forget_failure();
    uint64_t begun = now_ns(), spent = calls_spent_ns();
    bool taken = holdings[count].class->take(&holdings[count]);
    uint64_t took = now_ns() - begun;
    keep_longest(&slot->longest_ns, took);
    keep_longest(&slot->longest_outside_ns, took - (calls_spent_ns() - spent));
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

static void work(struct slot *slot, unsigned *seed) {
    if (count > 0 && should_give(seed))
        give((size_t)rand_r(seed) % count);
    else if (is_any_in_need())
        usleep(PAUSE_US);
    else
        take(slot, mixed[rand_r(seed) % (board->is_member ? MANAGED : MIXED)],
             UNIT * (1 + (size_t)rand_r(seed) % MOST_UNITS));
}

/* Memory of pools is freed before a comparison, because pools reserve whole chunks. */
static void give_memory_of_pools(void) {
    for (size_t i = count; i-- > 0;)
        if (holdings[i].class == find_class(mixed[ASYNC])) give(i);
}

static void stop(struct slot *slot, enum order order) {
    give_memory_of_pools();
    while (order == GIVE && count > 0) give(count - 1);
    slot->held = 0;
    for (size_t i = 0; i < count; i++) slot->held += holdings[i].bytes;
    __atomic_store_n(&slot->obeyed, order, __ATOMIC_RELEASE);
    usleep(PAUSE_US);
}

/* A context is large and would never fit beside busy workers: they free memory while a worker is in need. */
static void start_with_room(void) {
    if (start_cuda()) return;
    add(&board->in_need, 1);
    while (!start_cuda()) usleep(PAUSE_US);
    add(&board->in_need, (uint64_t)-1);
}

int serve(struct slot *slot, unsigned seed) {
    start_with_room();
    __atomic_store_n(&slot->is_working, true, __ATOMIC_RELEASE);
    for (;;) {
        enum order order = __atomic_load_n(&board->order, __ATOMIC_ACQUIRE);
        if (order == WORK)
            work(slot, &seed);
        else
            stop(slot, order);
    }
}
