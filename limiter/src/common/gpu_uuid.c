#include "common/gpu_uuid.h"

#include <assert.h>
#include <string.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char pattern[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
static_assert(sizeof pattern == GPU_UUID_TEXT, "includes the terminating zero");

bool gpu_uuid_parse(const char *text, size_t length, uint8_t uuid[UUID_SIZE]) {
    if (length != sizeof pattern - 1) return false;
    size_t nibble = 0;
    memset(uuid, 0, UUID_SIZE);
    for (size_t i = 0; i < length; i++) {
        int value = hex_digit(text[i]);
        if (pattern[i] != 'x' ? text[i] != pattern[i] : value < 0) return false;
        if (pattern[i] != 'x') continue;
        uuid[nibble / 2] = (uint8_t)(uuid[nibble / 2] << 4 | value);
        nibble++;
    }
    return true;
}

void gpu_uuid_write(const uint8_t uuid[UUID_SIZE], char text[GPU_UUID_TEXT]) {
    size_t nibble = 0;
    for (size_t i = 0; i < sizeof pattern; i++) {
        text[i] = pattern[i];
        if (pattern[i] != 'x') continue;
        text[i] = "0123456789abcdef"[nibble % 2 ? uuid[nibble / 2] & 15 : uuid[nibble / 2] >> 4];
        nibble++;
    }
}
