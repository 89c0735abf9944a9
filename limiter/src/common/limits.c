#include "common/limits.h"

#include <string.h>

static uint32_t crc32(const uint8_t *bytes, size_t length) {
    static const uint32_t nibbles[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t crc = ~0U;
    for (size_t i = 0; i < length; i++) {
        crc = nibbles[(crc ^ bytes[i]) & 15] ^ (crc >> 4);
        crc = nibbles[(crc ^ (bytes[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return ~crc;
}

static bool is_limits_file(const struct limits_file *file) {
    return memcmp(file->magic, LIMITS_MAGIC, sizeof file->magic) == 0 && file->version == LIMITS_VERSION &&
           file->slot_size == sizeof(struct limits_slot);
}

static bool is_valid(const struct limits_slot *slot) {
    return slot->crc == crc32((const uint8_t *)slot + sizeof slot->crc, sizeof *slot - sizeof slot->crc) &&
           slot->count <= LIMITS_CARDS && slot->compute_policy < POLICY_COUNT &&
           slot->memory_policy < MEMORY_POLICIES && slot->sm_percentage <= 100;
}

static uint32_t active_slot(const struct limits_file *file) {
    return __atomic_load_n(&file->active, __ATOMIC_ACQUIRE) & 1;
}

/* Validates a private copy, because the writer may change the slot at any moment. */
static bool copy_if_valid(const struct limits_slot *slot, struct limits_slot *out) {
    struct limits_slot copy = *slot;
    if (!is_valid(&copy)) return false;
    *out = copy;
    return true;
}

bool limits_decode(const struct limits_file *file, struct limits_slot *out) {
    if (!is_limits_file(file)) return false;
    uint32_t active = active_slot(file);
    return copy_if_valid(&file->slots[active], out) || copy_if_valid(&file->slots[active ^ 1], out);
}

/* Compares the checksum too: a file that was created anew starts its sequence numbers again. */
static bool is_same(const struct limits_slot *slot, const struct limits_slot *copy) {
    return __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) == copy->sequence && slot->crc == copy->crc;
}

bool limits_update(const struct limits_file *file, struct limits_slot *copy) {
    const struct limits_slot *slot = &file->slots[active_slot(file)];
    return !is_same(slot, copy) && is_limits_file(file) && copy_if_valid(slot, copy);
}

bool limits_is_in_space(const struct limits_slot *limits) {
    static const uint8_t no_group[SPACE_GROUP_SIZE];
    return memcmp(limits->space_group, no_group, sizeof no_group) != 0;
}

bool limits_is_of_job(const struct limits_slot *limits) {
    static const uint8_t none[JOB_ID_SIZE];
    return memcmp(limits->job, none, sizeof none) != 0 && !limits_is_in_space(limits);
}

struct card_limit limits_for_card(const struct limits_slot *limits, const uint8_t uuid[UUID_SIZE]) {
    static const uint8_t any_card[UUID_SIZE];
    struct card_limit found = {.memory = 0, .cores = 0};
    for (uint32_t i = 0; i < limits->count; i++) {
        const struct card_limit *entry = &limits->cards[i];
        if (memcmp(entry->uuid, uuid, UUID_SIZE) == 0) return *entry;
        if (memcmp(entry->uuid, any_card, UUID_SIZE) == 0) found = *entry;
    }
    return found;
}
