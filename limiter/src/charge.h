/* This process's side of the accounts: its limits, its region and its slot there. */
#ifndef VGPU_CHARGE_H
#define VGPU_CHARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region.h"

/* A charge made ahead of the driver's call. */
struct claim {
    int card; /* the region's row */
    uint64_t bytes;
    bool reaped; /* a dead process's charge was cleared for it: the driver may still be freeing that memory */
};

/* Whether anybody limits this process. Where not, nothing is counted. */
bool charge_is_limited(void);

/* Bytes that the container may hold on this card: UNLIMITED, or 0 where the limits cannot be read or do not name it. */
uint64_t charge_limit(const uint8_t uuid[UUID_SIZE]);

/* Bytes that the container's living processes hold on this card; of one that died, up to 100 ms longer. */
uint64_t charge_used(const uint8_t uuid[UUID_SIZE]);

/* Bytes that the process of that pid, as this process knows it, holds on this card; false where it is none of the
 * container's that has ever used a card. */
bool charge_of_process(uint32_t pid, const uint8_t uuid[UUID_SIZE], uint64_t *bytes);

/* Charges `bytes`; on refusal nothing is charged, and a line is logged that names `what` asked. */
bool charge_reserve(const char *what, const uint8_t uuid[UUID_SIZE], uint64_t bytes, struct claim *claim);

/* Takes a charge back. Never fails: where the lock cannot be had in time, the next one to have it catches up. */
void charge_release(int card, uint64_t bytes);

/* After an exec: the slot of this process's former image, whose memory the driver has freed, is cleared. */
void charge_clear_former_image(void);

#endif
