/* The limits file and the environment's grammar: bytes in, numbers out. Pure. Mirrored by vgpu/limits.py. */
#ifndef VGPU_COMMON_LIMITS_H
#define VGPU_COMMON_LIMITS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region/region.h"

#define LIMITS_MAGIC   "VGPULIMS"
#define LIMITS_VERSION 1
#define LIMITS_CARDS   32
#define FULL_CORES     100

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

/* Limits as text, in the environment's grammar; NULL stands for unset. */
struct limits_text {
    const char *memory;         /* VGPU_MEMORY_LIMIT: `8GiB`, `8192`, `uuid=8GiB,uuid=4GiB` */
    const char *cores;          /* VGPU_CORES_LIMIT: `30` */
    const char *compute_policy; /* VGPU_COMPUTE_POLICY */
    const char *memory_policy;  /* VGPU_MEMORY_POLICY */
};

/* False when one of them cannot be read. */
bool limits_parse(const struct limits_text *text, struct limits_slot *out);

/* A card's own entry, else the one for every card, else nothing may be used. */
struct card_limit limits_of(const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE]);

/* Reads `GPU-8-4-4-4-12` into 16 bytes; false where it is none. `length` is the text's. */
bool gpu_uuid_parse(const char *text, size_t length, uint8_t uuid[UUID_SIZE]);

#define GPU_UUID_TEXT 41 /* with the final zero */

/* Writes it so. */
void gpu_uuid_write(const uint8_t uuid[UUID_SIZE], char text[GPU_UUID_TEXT]);

#endif
