/* The limits file: its layout, and decoding that is safe against a concurrent writer. Pure. Mirrored by
 * vgpu/domain/formats/limits.py.
 *
 * The file has two slots. A writer on the host fills the slot that is not active and then flips `active`, so a writer
 * that dies half-way leaves the former limits intact. Readers check a slot's checksum on a copy. */
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

#define SPACE_GROUP_SIZE 16
#define JOB_ID_SIZE      16

enum compute_policy { POLICY_FIXED, POLICY_BURST, POLICY_BEST_EFFORT, POLICY_COUNT };

/* Response to an allocation that is within the limit when the card itself is full: refuse it, or serve it from managed
 * memory (hooks/memory/spill.h). */
enum memory_policy { MEMORY_REFUSE, MEMORY_SPILL, MEMORY_POLICIES };

struct card_limit {
    uint8_t uuid[UUID_SIZE]; /* zeros: applies to every card that has no entry of its own */
    uint64_t memory;         /* bytes; UNLIMITED: no limit; 0: every allocation is refused */
    uint32_t cores;          /* percent of the card's time */
    uint8_t reserved[20];
};

struct limits_slot {
    uint32_t crc;            /* zlib's crc32 of the rest of the slot */
    uint32_t count;          /* of the entries in `cards` */
    uint64_t sequence;       /* grows by one with each rewrite */
    uint32_t compute_policy; /* enum compute_policy */
    uint32_t priority;       /* among containers, for the arbiter; the higher number goes first */
    uint32_t memory_policy;  /* enum memory_policy */
    /* The group whose MPS server the container's processes are clients of; zeros: none. The compute policy beside it is
     * POLICY_BURST: that is what counts for a library that knows no groups. */
    uint8_t space_group[SPACE_GROUP_SIZE];
    uint32_t sm_percentage;   /* of a card's multiprocessors, for all processes of a group's member; 0: no cap */
    uint8_t job[JOB_ID_SIZE]; /* the job whose containers have their turns at the same moment; zeros: none */
    struct card_limit cards[LIMITS_CARDS];
};

struct limits_file {
    char magic[8];
    uint32_t version;
    uint32_t slot_size; /* bytes of one slot */
    uint32_t active;    /* index of the slot in force (lowest bit); atomic, the writer flips it last */
    uint8_t reserved[44];
    struct limits_slot slots[2];
};

static_assert(sizeof(struct card_limit) == 48, "layout");
static_assert(sizeof(struct limits_slot) == 1600, "layout");
static_assert(offsetof(struct limits_slot, space_group) == 28, "layout");
static_assert(offsetof(struct limits_slot, job) == 48, "layout");
static_assert(offsetof(struct limits_slot, cards) == 64, "layout");
static_assert(sizeof(struct limits_file) == 3264, "layout");

/* Copies the active slot into `out`, or the other slot where the active one has a wrong checksum. False, with `out`
 * unchanged, where neither slot is valid or the header is not that of a limits file. */
bool limits_decode(const struct limits_file *file, struct limits_slot *out);

/* Updates `copy` from the active slot; true where its content is new and valid. A torn slot leaves `copy` as it is: the
 * other slot would be older. */
bool limits_update(const struct limits_file *file, struct limits_slot *copy);

/* Whether the container is a member of a group in space. */
bool limits_is_in_space(const struct limits_slot *limits);

/* Whether the container is of a job that may have other containers. Members of groups in space are of none. */
bool limits_is_of_job(const struct limits_slot *limits);

/* The limit of a card: its own entry, else the entry for every card, else 0 bytes and 0 percent. */
struct card_limit limits_for_card(const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE]);

#endif
