/* A line has fields `key=value` and `key="some words"`. An unknown key or a malformed value is an error. */
#include "hardware/card_line.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/units.h"

enum { DEFAULT_CAPABILITY = 90 };

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "GPU-" and 32 hexadecimal digits with dashes anywhere between them. */
static bool parse_uuid(const char *text, unsigned char out[16]) {
    unsigned digits = 0;
    if (strncmp(text, "GPU-", 4) != 0) return false;
    for (text += 4; *text != '\0'; text++) {
        int digit = hex_digit(*text);
        if (*text == '-') continue;
        if (digit < 0 || digits == 32) return false;
        out[digits / 2] = (unsigned char)(digits % 2 == 0 ? digit << 4 : out[digits / 2] | digit);
        digits++;
    }
    return digits == 32;
}

static bool parse_number(const char *text, uint64_t limit, uint64_t *out) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end != '\0' || errno != 0 || value > limit) return false;
    *out = value;
    return true;
}

static bool set_text(char *out, size_t size, const char *value) {
    return *value != '\0' && (size_t)snprintf(out, size, "%s", value) < size;
}

static bool set_unsigned(unsigned *out, const char *value) {
    uint64_t number;
    if (!parse_number(value, UINT32_MAX, &number)) return false;
    *out = (unsigned)number;
    return true;
}

static bool set_size(uint64_t *out, const char *value, uint64_t unit) {
    uint64_t number;
    if (!parse_number(value, UINT64_C(1) << 30, &number)) return false;
    *out = number * unit;
    return true;
}

static bool set_flag(bool *out, const char *value) {
    unsigned number;
    if (!set_unsigned(&number, value) || number > 1) return false;
    *out = number == 1;
    return true;
}

static bool set_nvlinks(struct card *card, char *value) {
    char *rest = value;
    char *peer;
    while ((peer = strsep(&rest, ","))) {
        if (*peer == '\0') continue;
        if (card->nvlink_count == MAX_NVLINKS || !set_text(card->nvlink[card->nvlink_count], UUID_SIZE, peer))
            return false;
        card->nvlink_count++;
    }
    return true;
}

static bool set_size_field(struct card *card, const char *key, const char *value, bool *is_known) {
    *is_known = true;
    if (strcmp(key, "memoryMiB") == 0) return set_size(&card->memory, value, MIB);
    if (strcmp(key, "reservedMiB") == 0) return set_size(&card->reserved, value, MIB);
    if (strcmp(key, "contextMiB") == 0) return set_size(&card->context, value, MIB);
    if (strcmp(key, "moduleKiB") == 0) return set_size(&card->module, value, KIB);
    *is_known = false;
    return false;
}

static bool set_location_field(struct card *card, const char *key, const char *value, bool *is_known) {
    *is_known = true;
    if (strcmp(key, "index") == 0) return set_unsigned(&card->index, value);
    if (strcmp(key, "minor") == 0) return set_unsigned(&card->minor, value);
    if (strcmp(key, "numa") == 0) return set_unsigned(&card->numa, value);
    *is_known = false;
    return false;
}

static bool set_condition_field(struct card *card, const char *key, char *value) {
    if (strcmp(key, "healthy") == 0) return set_flag(&card->is_healthy, value);
    if (strcmp(key, "mig") == 0) return set_flag(&card->is_mig, value);
    if (strcmp(key, "recovery") == 0) return set_unsigned(&card->recovery, value);
    if (strcmp(key, "capability") == 0) return set_unsigned(&card->capability, value);
    if (strcmp(key, "computeMode") == 0) return set_unsigned(&card->compute_mode, value);
    return strcmp(key, "nvlink") == 0 && set_nvlinks(card, value);
}

static bool set_field(struct card *card, const char *key, char *value) {
    bool is_known;
    if (strcmp(key, "uuid") == 0) return parse_uuid(value, card->uuid_bytes) && set_text(card->uuid, UUID_SIZE, value);
    if (strcmp(key, "model") == 0) return set_text(card->model, MODEL_SIZE, value);
    bool is_valid = set_size_field(card, key, value, &is_known);
    if (!is_known) is_valid = set_location_field(card, key, value, &is_known);
    return is_known ? is_valid : set_condition_field(card, key, value);
}

/* Splits the next field off the line. Returns false at the end of the line, and when the field is malformed. */
static bool next_field(char **line, char **key, char **value, bool *is_malformed) {
    char *at = *line + strspn(*line, " \t\r\n");
    *key = at;
    at += strcspn(at, "= \t\r\n");
    if (**key == '\0') return false;
    *is_malformed = *at != '=';
    if (*is_malformed) return false;
    *at++ = '\0';
    bool is_quoted = *at == '"';
    *value = at + is_quoted;
    at = *value + strcspn(*value, is_quoted ? "\"" : " \t\r\n");
    *is_malformed = is_quoted && *at != '"';
    *line = *at == '\0' ? at : at + 1;
    *at = '\0';
    return !*is_malformed;
}

bool card_line_parse(char *line, struct card *card) {
    char *key;
    char *value;
    bool is_malformed = false;
    *card = (struct card){.is_healthy = true, .capability = DEFAULT_CAPABILITY};
    while (next_field(&line, &key, &value, &is_malformed))
        if (!set_field(card, key, value)) return false;
    return !is_malformed && *card->uuid != '\0' && *card->model != '\0' && card->memory > card->reserved;
}
