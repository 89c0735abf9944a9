/* Bytes that processes hold on each card. */
#ifndef SIMGPU_LEDGER_ACCOUNTS_H
#define SIMGPU_LEDGER_ACCOUNTS_H

#include <stdint.h>

#define MAX_PROCESSES 4096

struct ledger_process {
    uint64_t bytes;
    uint64_t busy_until; /* CLOCK_MONOTONIC ns of the last work; 0 = never any, UINT64_MAX = has work now */
    unsigned pid;        /* in the PID namespace of the caller */
    unsigned contexts;
    unsigned server; /* likewise, of the MPS server that it is a client of; 0 = of none */
};

/* Adds to the bytes of this process. -ENOMEM when all living processes together would pass `capacity`; -EBADF when this
 * process has not joined; -ENOSPC when there is no room for another card. */
int ledger_charge(const char *uuid, uint64_t bytes, uint64_t capacity);
/* Subtracts from the bytes of this process, down to 0. */
void ledger_release(const char *uuid, uint64_t bytes);
/* Adds to the contexts that this process has on the card. */
void ledger_add_contexts(const char *uuid, int added);
/* Bytes that all living processes and shared memory hold. */
uint64_t ledger_used(const char *uuid);
/* Lists living processes that hold memory on the card or launched work there, and that have a PID in the PID namespace
 * of the caller. Fills `out` up to `capacity` and returns how many there are. */
unsigned ledger_processes(const char *uuid, struct ledger_process *out, unsigned capacity);

#endif
