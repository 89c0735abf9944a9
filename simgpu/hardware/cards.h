/* The cards that the file `cards` describes, and which of them this container sees. */
#ifndef HARDWARE_CARDS_H
#define HARDWARE_CARDS_H

#include <stdbool.h>
#include <stdint.h>

#define UUID_SIZE   48
#define MODEL_SIZE  96
#define MAX_CARDS   16
#define MAX_NVLINKS 18

/* One line of the file. Sizes in bytes. */
typedef struct {
    char uuid[UUID_SIZE];
    unsigned char uuid_bytes[16];
    char model[MODEL_SIZE];
    unsigned index;
    unsigned minor;
    unsigned numa;
    unsigned recovery; /* nvmlDeviceGpuRecoveryAction_t: the repair that NVML says the card needs; 0 = none */
    unsigned nvlink_count;
    char nvlink[MAX_NVLINKS][UUID_SIZE];
    uint64_t memory;   /* NVML's total */
    uint64_t reserved; /* part of `memory` that no program can use; CUDA's total is memory - reserved */
    uint64_t context;  /* charged for each CUDA context */
    uint64_t module;   /* charged for each loaded module */
    bool healthy;
    bool mig;
} Card;

typedef struct {
    unsigned count;
    Card card[MAX_CARDS];
} Cards;

/* Reads the cards that this container sees, by ascending index. Reads the file again after each change. Returns 0;
 * -ENOENT when there is no such file, which stands for a machine without a driver; -EINVAL when a line is malformed,
 * after one message on standard error. */
int cards_visible(Cards *out);

/* Finds a card of the file by its UUID, whether or not this container sees the card. */
bool card_find(const char *uuid, Card *out);

/* Whether `text` is the UUID or a prefix of it that begins with "GPU-", as CUDA_VISIBLE_DEVICES allows. */
bool uuid_matches(const char *uuid, const char *text);

#endif
