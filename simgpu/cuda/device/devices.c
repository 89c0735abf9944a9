#include "cuda/device/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct device devices[MAX_CARDS];
static CUdevice devices_found;

/* The index of the card that a token of CUDA_VISIBLE_DEVICES names; -1 when there is none. */
static int index_of(const struct cards *cards, const char *token) {
    char *end;
    long index = strtol(token, &end, 10);
    bool by_index = end != token;
    for (unsigned i = 0; i < cards->count; i++)
        if (by_index ? index == (long)i : uuid_matches(cards->card[i].uuid, token)) return (int)i;
    return -1;
}

/* Returns false when the card is listed already. */
static bool add_device(const struct card *card) {
    for (CUdevice i = 0; i < devices_found; i++)
        if (strcmp(devices[i].uuid, card->uuid) == 0) return false;
    memcpy(devices[devices_found++].uuid, card->uuid, UUID_SIZE);
    return true;
}

/* Adds the cards that CUDA_VISIBLE_DEVICES lists, in its order, up to the first name that matches no card. Naming a
 * card twice is an error. A real driver does the same. */
static CUresult add_listed(const struct cards *cards, const char *list) {
    char *copy = strdup(list);
    char *rest = copy;
    char *token;
    int found = 0;
    bool is_repeated = false;
    while (found >= 0 && !is_repeated && (token = strsep(&rest, ","))) {
        found = index_of(cards, token);
        is_repeated = found >= 0 && !add_device(&cards->card[found]);
    }
    free(copy);
    return is_repeated ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult devices_find(void) {
    static struct cards cards; /* static because it is large */
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    CUresult listing = CUDA_SUCCESS;
    devices_found = 0;
    int result = cards_visible(&cards);
    if (result != 0) return result == -EINVAL ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_NO_DEVICE;
    for (unsigned i = 0; !list && i < cards.count; i++) add_device(&cards.card[i]);
    if (list) listing = add_listed(&cards, list);
    return listing == CUDA_SUCCESS && devices_found == 0 ? CUDA_ERROR_NO_DEVICE : listing;
}

struct device *device_at(CUdevice ordinal) {
    return ordinal >= 0 && ordinal < devices_found ? &devices[ordinal] : NULL;
}

CUdevice device_count(void) { return devices_found; }

bool device_card(CUdevice ordinal, struct card *out) {
    const struct device *device = device_at(ordinal);
    return device && card_find(device->uuid, out) && out->is_healthy;
}

CUdevice device_of_uuid(const char *uuid) {
    for (CUdevice ordinal = 0; ordinal < device_count(); ordinal++)
        if (strcmp(device_at(ordinal)->uuid, uuid) == 0) return ordinal;
    return -1;
}
