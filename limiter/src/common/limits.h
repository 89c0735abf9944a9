/* The limits file and the environment's grammar: bytes in, numbers out. Pure. Mirrored by vgpu/limits.py. */
#ifndef VGPU_COMMON_LIMITS_H
#define VGPU_COMMON_LIMITS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/gpu_uuid.h"

#define LIMITS_MAGIC   "VGPULIMS"
#define LIMITS_VERSION 1
#define LIMITS_CARDS   32
#define FULL_CORES     100
#define UNLIMITED      UINT64_MAX /* bytes of memory */

enum compute_policy { POLICY_FIXED, POLICY_BURST, POLICY_BEST_EFFORT, POLICY_COUNT };

/* What becomes of an allocation within the limit when the card is full: see spill.h. */
enum memory_policy { MEMORY_REFUSE, MEMORY_SPILL, MEMORY_POLICIES };

struct card_limit {
    uint8_t uuid[UUID_SIZE]; /* zeros: every card that has no entry of its own */
    uint64_t memory;         /* bytes; UNLIMITED; 0 refuses all */
    uint32_t cores;          /* percent of the card's time */
    uint8_t reserved[20];
};

struct limits_slot {
    uint32_t crc; /* zlib's crc32 of the rest of the slot */
    uint32_t count;
    uint64_t sequence; /* grows with each rewrite */
    uint32_t compute_policy;
    uint32_t priority;
    uint32_t memory_policy;
    uint8_t reserved[36];
    struct card_limit cards[LIMITS_CARDS];
};

struct limits_file {
    char magic[8];
    uint32_t version;
    uint32_t slot_size;
    uint32_t active; /* flipped last by the host's writer */
    uint8_t reserved[44];
    struct limits_slot slots[2];
};

static_assert(sizeof(struct card_limit) == 48, "layout");
static_assert(sizeof(struct limits_slot) == 1600, "layout");
static_assert(offsetof(struct limits_slot, cards) == 64, "layout");
static_assert(sizeof(struct limits_file) == 3264, "layout");

/* Copies the slot in force into `out`, or the other one where that is torn. False when neither is whole, or the bytes
 * are no limits file; `out` is then unchanged. */
bool limits_decode(const struct limits_file *file, struct limits_slot *out);

/* Brings a copy up to date: whether the slot in force was another one, and whole. A torn one leaves the last good copy,
 * for the other slot is older than that. */
bool limits_follow(const struct limits_file *file, struct limits_slot *copy);

/* A card's own entry, else the one for every card, else nothing may be used. */
struct card_limit limits_of(const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE]);

#endif
