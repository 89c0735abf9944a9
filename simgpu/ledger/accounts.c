#include "ledger/accounts.h"

#include <assert.h>
#include <errno.h>

#include "ledger/attach.h"
#include "ledger/card_time.h"
#include "ledger/mps_servers.h"
#include "ledger/shared_memory.h"
#include "ledger/state.h"

static_assert(MAX_PROCESSES == SLOTS, "each process has a slot");

static uint64_t slot_bytes(uint32_t slot, int card) {
    return __atomic_load_n(&state->slot[slot].bytes[card], __ATOMIC_RELAXED);
}

/* The dead are included until `reap` clears their slots. */
static uint64_t sum_of_all(int card) {
    uint64_t sum = shared_memory_sum(card, false);
    for (uint32_t slot = 0; slot < state->slots_used; slot++) sum += slot_bytes(slot, card);
    return sum;
}

/* Slots are read without the file's lock, shared memory with it. */
static bool has_shared_memory(void) { return __atomic_load_n(&state->shared_used, __ATOMIC_ACQUIRE) > 0; }

static uint64_t sum_of_living(int card) {
    HELD_STATE const bool is_state_held = state_hold(has_shared_memory());
    uint64_t sum = shared_memory_sum(card, true);
    uint32_t used = __atomic_load_n(&state->slots_used, __ATOMIC_ACQUIRE);
    for (uint32_t slot = 0; slot < used; slot++)
        if (slot_bytes(slot, card) != 0 && slot_is_alive((int)slot)) sum += slot_bytes(slot, card);
    return sum;
}

/* Under the file's lock. */
static void reap(void) {
    for (uint32_t slot = 0; slot < state->slots_used; slot++) {
        if (!slot_is_alive((int)slot)) {
            state->slot[slot] = (struct slot){0};
            shared_memory_forget(slot);
        }
    }
    shared_memory_reap();
}

/* Reaps dead processes only where that can change the answer or the peak. Under the file's lock. */
static bool has_room(int card, uint64_t bytes, uint64_t capacity) {
    uint64_t sum = sum_of_all(card);
    if (bytes > capacity) return false;
    if (sum > capacity - bytes || sum + bytes > state->peak[card]) {
        reap();
        sum = sum_of_all(card);
    }
    if (sum > capacity - bytes) return false;
    state->peak[card] = sum + bytes > state->peak[card] ? sum + bytes : state->peak[card];
    return true;
}

/* Under the file's lock. */
static int charge(int card, uint64_t bytes, uint64_t capacity) {
    uint64_t *held = &state->slot[own_slot].bytes[card];
    uint64_t most = state->slot[own_slot].most_bytes;
    if (most != 0 && (bytes > most || *held > most - bytes)) return -ENOMEM;
    if (!has_room(card, bytes, capacity)) return -ENOMEM;
    __atomic_store_n(held, *held + bytes, __ATOMIC_RELAXED);
    return 0;
}

int ledger_charge(const char *uuid, uint64_t bytes, uint64_t capacity) {
    if (own_slot < 0) return -EBADF;
    HOLD_STATE();
    int card = card_index_or_add(uuid);
    return card < 0 ? -ENOSPC : charge(card, bytes, capacity);
}

void ledger_release(const char *uuid, uint64_t bytes) {
    if (own_slot < 0) return;
    HOLD_STATE();
    int card = card_index(uuid);
    if (card >= 0) {
        uint64_t *held = &state->slot[own_slot].bytes[card];
        __atomic_store_n(held, *held - (bytes < *held ? bytes : *held), __ATOMIC_RELAXED);
    }
}

void ledger_add_contexts(const char *uuid, int added) {
    if (own_slot < 0) return;
    HOLD_STATE();
    int card = card_index_or_add(uuid);
    if (card >= 0) __atomic_fetch_add(&state->slot[own_slot].contexts[card], (uint32_t)added, __ATOMIC_RELAXED);
}

uint64_t ledger_used(const char *uuid) {
    if (ledger_attach() != 0) return 0;
    int card = card_index(uuid);
    return card < 0 ? 0 : sum_of_living(card);
}

/* Returns false when the slot's process does not belong in the list of the card's processes. */
static bool describe(uint32_t slot, int card, struct ledger_process *out) {
    uint64_t busy_until = __atomic_load_n(&state->slot[slot].busy_until[card], __ATOMIC_RELAXED);
    uint64_t bytes = slot_bytes(slot, card) + shared_memory_attributed(slot, card);
    *out = (struct ledger_process){.bytes = bytes, .busy_until = busy_until};
    out->contexts = __atomic_load_n(&state->slot[slot].contexts[card], __ATOMIC_RELAXED);
    if ((bytes | busy_until) == 0 || !slot_is_alive((int)slot)) return false;
    out->pid = slot_pid(slot);
    out->server = mps_server_pid(slot);
    return out->pid != 0;
}

unsigned ledger_processes(const char *uuid, struct ledger_process *out, unsigned capacity) {
    unsigned count = 0;
    struct ledger_process found;
    if (ledger_attach() != 0) return 0;
    HELD_STATE const bool is_state_held = state_hold(has_shared_memory());
    int card = card_index(uuid);
    if (card >= 0) card_time_publish(card);
    for (uint32_t slot = 0; card >= 0 && slot < state->slots_used; slot++) {
        if (!describe(slot, card, &found)) continue;
        if (count < capacity) out[count] = found;
        count++;
    }
    return count;
}
