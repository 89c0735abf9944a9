/* The cards that the file `cards` describes, and which of them this container sees. */
#ifndef SIMGPU_HARDWARE_CARDS_H
#define SIMGPU_HARDWARE_CARDS_H

#include "hardware/card.h"

#include <stdbool.h>

#define MAX_CARDS 16

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
