#include "books/exports.h"

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

static struct hash_table pointers; /* under the mutex: those that live; `bytes` is the size */
static struct hash_table steps; /* under the mutex: `other` is the pool, `count` of living pointers, `card` 1: lost */
static struct hash_table lost;  /* under the mutex: by pool, `count` of steps */
static bool is_any;             /* atomically: never unset */

static void forget(void) {
    hash_table_clear(&pointers);
    hash_table_clear(&steps);
    hash_table_clear(&lost);
    is_any = false;
}
FORGET_IN_CHILD(forget);

bool exports_any(void) { return __atomic_load_n(&is_any, __ATOMIC_ACQUIRE); }

/* The functions down to the next line are called under the mutex. */

/* A pool's own, and never 0, which is the ledger's mark of emptiness: addresses have 57 bits at most, so 32 are left.
 */
static uint64_t step_of(uint64_t pool, uint64_t address) { return pool << 32 | (address / POOL_STEP + 1); }

static void count_lost(uint64_t pool, uint32_t more) {
    struct hash_table_entry entry = hash_table_find(&lost, pool);
    hash_table_put(&lost, (struct hash_table_entry){.key = pool, .count = entry.count + more});
}

static void set_lost(struct hash_table_entry *step, bool is_lost) {
    if ((step->card != 0) != is_lost) count_lost(step->other, is_lost ? 1 : (uint32_t)-1);
    step->card = is_lost;
}

static bool add_step(uint64_t pool, uint64_t key) {
    struct hash_table_entry step = hash_table_find(&steps, key);
    set_lost(&step, false);
    step.key = key;
    step.other = pool;
    step.count++;
    return hash_table_put(&steps, step);
}

static void leave_step(uint64_t key) {
    struct hash_table_entry step = hash_table_find(&steps, key);
    if (step.count == 0) return;
    step.count--;
    hash_table_put(&steps, step);
}

static void leave_steps(const struct hash_table_entry *pointer) {
    uint64_t last = step_of(pointer->other, pointer->key + pointer->bytes - 1);
    for (uint64_t key = step_of(pointer->other, pointer->key); key <= last; key++) leave_step(key);
}

static bool add_steps(uint64_t pool, uint64_t address, uint64_t size) {
    bool all = true;
    uint64_t last = step_of(pool, address + size - 1);
    for (uint64_t key = step_of(pool, address); key <= last; key++) all &= add_step(pool, key);
    return all;
}

/* The functions from here on take it. */

/* One that was freed behind our back counts no longer. */
bool exports_add(uint64_t pool, uint64_t address, uint64_t size) {
    lock_take(LOCK_EXPORTS);
    struct hash_table_entry former = hash_table_take(&pointers, address);
    if (former.key != 0) leave_steps(&former);
    bool kept = size != 0 && hash_table_put(&pointers, (struct hash_table_entry){address, size, pool, 0, 0}) &&
                add_steps(pool, address, size);
    __atomic_store_n(&is_any, true, __ATOMIC_RELEASE);
    lock_release(LOCK_EXPORTS);
    return kept;
}

void exports_free(uint64_t address) {
    lock_take(LOCK_EXPORTS);
    struct hash_table_entry pointer = hash_table_take(&pointers, address);
    if (pointer.key != 0) leave_steps(&pointer);
    lock_release(LOCK_EXPORTS);
}

static bool can_be_lost(const struct hash_table_entry *step, uint64_t pool) {
    return step->key != 0 && step->other == pool && step->count == 0 && step->card == 0;
}

void exports_shrink(uint64_t pool, uint64_t bytes) {
    uint64_t most = (bytes + POOL_STEP - 1) / POOL_STEP;
    lock_take(LOCK_EXPORTS);
    for (size_t i = 0; i < steps.size && most > 0; i++)
        if (can_be_lost(&steps.entries[i], pool)) {
            set_lost(&steps.entries[i], true);
            most--;
        }
    lock_release(LOCK_EXPORTS);
}

uint64_t exports_lost_bytes(uint64_t pool) {
    lock_take(LOCK_EXPORTS);
    uint64_t count = hash_table_find(&lost, pool).count;
    lock_release(LOCK_EXPORTS);
    return count * POOL_STEP;
}

uint64_t exports_bytes(uint64_t pool) {
    uint64_t count = 0;
    lock_take(LOCK_EXPORTS);
    for (size_t i = 0; i < steps.size; i++) count += steps.entries[i].key != 0 && steps.entries[i].other == pool;
    lock_release(LOCK_EXPORTS);
    return count * POOL_STEP;
}

void exports_end_pool(uint64_t pool) {
    lock_take(LOCK_EXPORTS);
    hash_table_take_all(&steps, pool);
    hash_table_take_all(&pointers, pool);
    hash_table_take(&lost, pool);
    lock_release(LOCK_EXPORTS);
}
