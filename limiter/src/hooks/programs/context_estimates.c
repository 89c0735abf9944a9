#include "hooks/programs/context_estimates.h"

#include <string.h>

#include "charge/measure/free_memory.h"
#include "container/container.h"
#include "process/fork.h"
#include "region/account.h"

enum { ENTRIES = 64 };
#define TAKEN ((CUcontext)1) /* the other fields of the entry are being written or read */

static struct {
    CUcontext context; /* atomic; NULL: the entry is free */
    int card;
    uint64_t bytes;
} entries[ENTRIES];

static void forget(void) { memset(entries, 0, sizeof entries); }
FORGET_IN_CHILD(forget);

/* The index of the entry with that context, which is the caller's now; -1: there is none. */
static int take(CUcontext context) {
    for (int i = 0; i < ENTRIES; i++) {
        CUcontext found = context;
        if (__atomic_compare_exchange_n(&entries[i].context, &found, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return i;
    }
    return -1;
}

static void leave(int entry, CUcontext context) {
    __atomic_store_n(&entries[entry].context, context, __ATOMIC_RELEASE);
}

/* Where the table is full, the estimate is released: no call would release it later. */
void context_estimates_put(CUcontext context, const struct measured_call *call) {
    const struct region *region = call->estimated ? container_region() : NULL;
    if (!region) return;
    int card = account_find_card(region, call->uuid), entry = take(NULL);
    if (entry < 0) {
        free_memory_release(card, call->estimated);
        return;
    }
    entries[entry].card = card;
    entries[entry].bytes = call->estimated;
    leave(entry, context);
}

void context_estimates_end(CUcontext context) {
    int entry = context ? take(context) : -1;
    if (entry < 0) return;
    free_memory_release(entries[entry].card, entries[entry].bytes);
    leave(entry, NULL);
}
