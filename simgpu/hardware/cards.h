/* The cards that the file `cards` describes, and which of them this container sees. */
#ifndef SIMGPU_HARDWARE_CARDS_H
#define SIMGPU_HARDWARE_CARDS_H

#include <stdbool.h>

#include "hardware/card.h"

#define MAX_CARDS 16

struct cards {
    unsigned count;
    struct card card[MAX_CARDS];
};

/* Reads the cards that this container sees, by ascending index. Reads the file again after each change. Returns 0;
 * -ENOENT when there is no such file, which stands for a machine without a driver; -EINVAL when a line is malformed,
 * after one message on standard error. */
int cards_visible(struct cards *out);

/* Finds a card of the file by its UUID, whether or not this container sees the card. */
bool card_find(const char *uuid, struct card *out);

/* Whether `text` is the UUID or a prefix of it that begins with "GPU-", as CUDA_VISIBLE_DEVICES allows. */
bool uuid_matches(const char *uuid, const char *text);

#endif
