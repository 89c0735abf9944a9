#include "books/pools/exports.h"

#include "books/hash_table.h"
#include "process/fork.h"
#include "process/lock.h"

/* The tables are under LOCK_EXPORTS.
 * pointers: exported and not freed. key: the address, value: the pool, bytes: the size.
 * steps: that exported pointers lie in, or lay in. key: `step_key`, value: the pool, count: of `pointers` in the step,
 *        card: 1 = the step is lost.
 * lost: key: the pool, count: of its lost steps. */
static struct hash_table pointers, steps, lost;
static bool is_any; /* atomic; never reset */

static void forget(void) {
    hash_table_clear(&pointers);
    hash_table_clear(&steps);
    hash_table_clear(&lost);
    is_any = false;
}
FORGET_IN_CHILD(forget);

bool exports_any(void) { return __atomic_load_n(&is_any, __ATOMIC_ACQUIRE); }

/* Key of a pool's step. Addresses have at most 57 bits, so the step's index fits into the low 32 bits; it is never 0,
 * which marks an empty place in a hash table. */
static uint64_t step_key(uint64_t pool, uint64_t address) { return pool << 32 | (address / POOL_STEP + 1); }

static void count_lost(uint64_t pool, uint32_t change) {
    struct hash_table_entry entry = hash_table_find(&lost, pool);
    hash_table_put(&lost, (struct hash_table_entry){.key = pool, .count = entry.count + change});
}

static void set_lost(struct hash_table_entry *step, bool is_lost) {
    if ((step->card != 0) != is_lost) count_lost(step->value, is_lost ? 1 : (uint32_t)-1);
    step->card = is_lost;
}

static bool add_to_step(uint64_t pool, uint64_t key) {
    struct hash_table_entry step = hash_table_find(&steps, key);
    set_lost(&step, false);
    step.key = key;
    step.value = pool;
    step.count++;
    return hash_table_put(&steps, step);
}

static void remove_from_step(uint64_t key) {
    struct hash_table_entry step = hash_table_find(&steps, key);
    if (step.count == 0) return;
    step.count--;
    hash_table_put(&steps, step);
}

static void remove_from_steps(const struct hash_table_entry *pointer) {
    uint64_t last = step_key(pointer->value, pointer->key + pointer->bytes - 1);
    for (uint64_t key = step_key(pointer->value, pointer->key); key <= last; key++) remove_from_step(key);
}

static bool add_to_steps(uint64_t pool, uint64_t address, uint64_t size) {
    bool are_all_added = true;
    uint64_t last = step_key(pool, address + size - 1);
    for (uint64_t key = step_key(pool, address); key <= last; key++) are_all_added &= add_to_step(pool, key);
    return are_all_added;
}

/* A former entry of this address belongs to a pointer that was freed without the library's notice. */
bool exports_add(uint64_t pool, uint64_t address, uint64_t size) {
    HOLD_LOCK(LOCK_EXPORTS);
    struct hash_table_entry former = hash_table_take(&pointers, address);
    if (former.key != 0) remove_from_steps(&former);
    bool is_added =
        size != 0 &&
        hash_table_put(&pointers, (struct hash_table_entry){.key = address, .bytes = size, .value = pool}) &&
        add_to_steps(pool, address, size);
    __atomic_store_n(&is_any, true, __ATOMIC_RELEASE);
    return is_added;
}

void exports_free(uint64_t address) {
    HOLD_LOCK(LOCK_EXPORTS);
    struct hash_table_entry pointer = hash_table_take(&pointers, address);
    if (pointer.key != 0) remove_from_steps(&pointer);
}

static bool can_be_lost(const struct hash_table_entry *step, uint64_t pool) {
    return step->key != 0 && step->value == pool && step->count == 0 && step->card == 0;
}

void exports_shrink(uint64_t pool, uint64_t bytes) {
    uint64_t steps_left = (bytes + POOL_STEP - 1) / POOL_STEP;
    HOLD_LOCK(LOCK_EXPORTS);
    for (size_t i = 0; i < steps.size && steps_left > 0; i++)
        if (can_be_lost(&steps.entries[i], pool)) {
            set_lost(&steps.entries[i], true);
            steps_left--;
        }
}

uint64_t exports_lost_bytes(uint64_t pool) {
    HOLD_LOCK(LOCK_EXPORTS);
    uint64_t count = hash_table_find(&lost, pool).count;
    return count * POOL_STEP;
}

uint64_t exports_bytes(uint64_t pool) {
    uint64_t count = 0;
    HOLD_LOCK(LOCK_EXPORTS);
    for (size_t i = 0; i < steps.size; i++) count += steps.entries[i].key != 0 && steps.entries[i].value == pool;
    return count * POOL_STEP;
}

void exports_end_pool(uint64_t pool) {
    HOLD_LOCK(LOCK_EXPORTS);
    hash_table_take_all(&steps, pool);
    hash_table_take_all(&pointers, pool);
    hash_table_take(&lost, pool);
}
