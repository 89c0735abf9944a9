/* This process's side of the accounts: what it charges and takes back. */
#ifndef VGPU_CHARGE_CHARGE_H
#define VGPU_CHARGE_CHARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/region.h"

/* A charge made ahead of the driver's call. */
struct reservation {
    int card; /* the region's row */
    uint64_t bytes;
    bool has_reaped; /* a dead process's charge was cleared for it: the driver may still be freeing that memory */
    int retries;     /* how often the driver was asked again for that */
};

/* Whether what exceeds a full card, within a limit, is to be served from managed memory. */
bool charge_may_spill(const uint8_t uuid[UUID_SIZE]);

/* The span around a call that changes what this process holds, from before the driver's part until the account is made
 * right: in it what NVML says is not taken for what is to be charged. What the first returns is for the second. */
int charge_begin_call(void);
void charge_end_call(int call_slot);

/* The functions down to the next line are called in such a span, one of the caller's. */

/* Charges `bytes` if they fit at once. */
bool charge_try(const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct reservation *reservation);

/* In a span: gives back what is kept on a card without use; and corrects what is charged too much, too. */
void charge_trim_idle(const uint8_t uuid[UUID_SIZE]);
void charge_trim_and_correct(const uint8_t uuid[UUID_SIZE]);

/* Charges `bytes`, after all that makes room; on refusal nothing is charged, and a line is logged that names `what`
 * asked. */
bool charge_reserve(const char *function_name, const uint8_t uuid[UUID_SIZE], uint64_t bytes,
                    struct reservation *reservation);

/* Charges what the driver has given already, whether it fits or not. */
void charge_unconditionally(int card, uint64_t bytes);

/* Of what is charged, `bytes` are managed memory, which NVML does not count, or other memory that it does not; or does
 * again. */
void charge_mark_managed(int card, uint64_t bytes);
void charge_unmark_managed(int card, uint64_t bytes);

/* Counts an allocation that was served from managed memory. */
void charge_count_spill(int card, uint64_t bytes);

#endif
