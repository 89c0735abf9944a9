/* The ledger's sums: what is held of each card, by whom, and who keeps it busy. */
#define _GNU_SOURCE
#include "ledger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int ledger_place_of(const char *uuid) {
    uint32_t cards = __atomic_load_n(&state->cards, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < cards; i++) {
        if (strcmp(state->uuid[i], uuid) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Under the file's lock. */
int ledger_place(const char *uuid) {
    int place = ledger_place_of(uuid);
    if (place >= 0 || state->cards == CARDS) {
        return place;
    }
    place = (int)state->cards;
    (void)snprintf(state->uuid[place], SIM_UUID_SIZE, "%s", uuid);
    __atomic_store_n(&state->cards, state->cards + 1, __ATOMIC_RELEASE);
    return place;
}

static uint64_t slot_bytes(uint32_t slot, int place) {
    return __atomic_load_n(&state->slot[slot].bytes[place], __ATOMIC_RELAXED);
}

static uint64_t sum_of_all(int place) {
    uint64_t sum = shares_sum(place, false);
    for (uint32_t slot = 0; slot < state->high; slot++) {
        sum += slot_bytes(slot, place);
    }
    return sum;
}

/* Slots are read without the file's lock, shares under it: true when there are any, and it was taken. */
static bool enter_for_shares(void) {
    bool shared = __atomic_load_n(&state->share_high, __ATOMIC_ACQUIRE) > 0;
    if (shared) {
        ledger_enter();
    }
    return shared;
}

static void leave_if(bool entered) {
    if (entered) {
        ledger_leave();
    }
}

static uint64_t sum_of_living(int place) {
    bool entered = enter_for_shares();
    uint64_t sum = shares_sum(place, true);
    uint32_t high = __atomic_load_n(&state->high, __ATOMIC_ACQUIRE);
    for (uint32_t slot = 0; slot < high; slot++) {
        if (slot_bytes(slot, place) != 0 && ledger_alive((int)slot)) {
            sum += slot_bytes(slot, place);
        }
    }
    leave_if(entered);
    return sum;
}

/* Under the file's lock. */
static void reap(void) {
    for (uint32_t slot = 0; slot < state->high; slot++) {
        if (!ledger_alive((int)slot)) {
            state->slot[slot] = (Slot){0};
            shares_forget(slot);
        }
    }
    shares_reap();
}

bool ledger_has_room(int place, uint64_t bytes, uint64_t capacity) {
    uint64_t sum = sum_of_all(place);
    if (bytes > capacity) {
        return false;
    }
    if (sum > capacity - bytes || sum + bytes > state->peak[place]) {
        reap();
        sum = sum_of_all(place);
    }
    if (sum > capacity - bytes) {
        return false;
    }
    state->peak[place] = sum + bytes > state->peak[place] ? sum + bytes : state->peak[place];
    return true;
}

/* Under the file's lock. */
static int charge_place(int place, uint64_t bytes, uint64_t capacity) {
    if (!ledger_has_room(place, bytes, capacity)) {
        return -ENOMEM;
    }
    uint64_t *held = &state->slot[own_slot].bytes[place];
    __atomic_store_n(held, *held + bytes, __ATOMIC_RELAXED);
    return 0;
}

int ledger_charge(const char *uuid, uint64_t bytes, uint64_t capacity) {
    if (own_slot < 0) {
        return -EBADF;
    }
    ledger_enter();
    int place = ledger_place(uuid);
    int result = place < 0 ? -ENOSPC : charge_place(place, bytes, capacity);
    ledger_leave();
    return result;
}

void ledger_release(const char *uuid, uint64_t bytes) {
    if (own_slot < 0) {
        return;
    }
    ledger_enter();
    int place = ledger_place_of(uuid);
    if (place >= 0) {
        uint64_t *held = &state->slot[own_slot].bytes[place];
        __atomic_store_n(held, *held - (bytes < *held ? bytes : *held), __ATOMIC_RELAXED);
    }
    ledger_leave();
}

uint64_t ledger_used(const char *uuid) {
    if (ledger_attached() != 0) {
        return 0;
    }
    int place = ledger_place_of(uuid);
    return place < 0 ? 0 : sum_of_living(place);
}

/* False when the slot's process is not to be listed for the card. */
static bool describe(uint32_t slot, int place, SimProcess *out) {
    uint64_t busy_until = __atomic_load_n(&state->slot[slot].busy_until[place], __ATOMIC_RELAXED);
    uint64_t bytes = slot_bytes(slot, place) + shares_shown(slot, place);
    *out = (SimProcess){.bytes = bytes, .busy_until = busy_until};
    if ((bytes | busy_until) == 0 || !ledger_alive((int)slot)) {
        return false;
    }
    out->pid = ledger_owner(slot);
    return out->pid != 0;
}

unsigned ledger_processes(const char *uuid, SimProcess *out, unsigned capacity) {
    unsigned count = 0;
    SimProcess found;
    if (ledger_attached() != 0) {
        return 0;
    }
    bool entered = enter_for_shares();
    int place = ledger_place_of(uuid);
    if (place >= 0) {
        time_tell(place);
    }
    for (uint32_t slot = 0; place >= 0 && slot < state->high; slot++) {
        if (!describe(slot, place, &found)) {
            continue;
        }
        if (count < capacity) {
            out[count] = found;
        }
        count++;
    }
    leave_if(entered);
    return count;
}

bool ledger_count_fault(uint64_t version, unsigned line, unsigned limit) {
    if (line >= FAULT_LINES || ledger_attached() != 0) {
        return false;
    }
    ledger_enter();
    if (state->fault_version != version) {
        state->fault_version = version;
        memset(state->fault_used, 0, sizeof state->fault_used);
    }
    bool counted = state->fault_used[line] < limit;
    state->fault_used[line] += counted;
    ledger_leave();
    return counted;
}
