#include "common/grammar.h"
#include "common/gpu_uuid.h"

#include <string.h>

/* The characters that are still to be parsed. */
struct cursor {
    const char *at;
    const char *end;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static struct cursor trimmed(const char *at, const char *end) {
    while (at < end && is_space(*at)) at++;
    while (at < end && is_space(end[-1])) end--;
    return (struct cursor){at, end};
}

static bool accept_char(struct cursor *text, char c) {
    if (text->at == text->end || *text->at != c) return false;
    text->at++;
    return true;
}

/* Consumes up to `max_digits` digits and returns their count; 0 where the text begins with no digit. */
static int parse_digits(struct cursor *text, int max_digits, uint64_t *value) {
    int count = 0;
    for (*value = 0; count < max_digits && text->at < text->end && is_digit(*text->at); count++)
        *value = *value * 10 + (uint64_t)(*text->at++ - '0');
    return count;
}

/* Consumes `Ki`, `Mi`, `Gi` or `Ti`, each with or without a `B`, and returns its bytes; no unit means MiB. */
static uint64_t parse_unit(struct cursor *text) {
    static const char prefixes[] = "KMGT";
    uint64_t scale = 1ULL << 20;
    if (text->at < text->end && is_space(*text->at)) text->at++;
    const char *prefix = text->at < text->end ? strchr(prefixes, *text->at) : NULL;
    if (prefix && text->end - text->at > 1 && text->at[1] == 'i') {
        scale = 1ULL << (10 * (prefix - prefixes + 1));
        text->at += 2;
    }
    accept_char(text, 'B');
    return scale;
}

static bool parse_size(struct cursor text, uint64_t *bytes) {
    static const uint64_t tens[] = {1, 10, 100, 1000};
    uint64_t whole;
    uint64_t fraction = 0;
    int digits = 0;
    if (parse_digits(&text, 9, &whole) == 0) return false;
    if (accept_char(&text, '.') && (digits = parse_digits(&text, 3, &fraction)) == 0) return false;
    uint64_t scale = parse_unit(&text);
    if (text.at != text.end || whole >= UINT64_MAX / scale) return false;
    *bytes = whole * scale + fraction * scale / tens[digits];
    return true;
}

/* Parses `uuid=8GiB`, or `8GiB`, which applies to every card: its `uuid` stays zero. */
static bool parse_entry(struct cursor text, struct card_limit *entry) {
    const char *equals = memchr(text.at, '=', (size_t)(text.end - text.at));
    if (!equals) return parse_size(trimmed(text.at, text.end), &entry->memory);
    struct cursor uuid = trimmed(text.at, equals);
    return gpu_uuid_parse(uuid.at, (size_t)(uuid.end - uuid.at), entry->uuid) &&
           parse_size(trimmed(equals + 1, text.end), &entry->memory);
}

/* Whether the last entry names a card that an entry before it names, or is the second for every card. */
static bool is_last_repeated(const struct limits_slot *limits) {
    const struct card_limit *last = &limits->cards[limits->count - 1];
    for (const struct card_limit *card = limits->cards; card < last; card++)
        if (memcmp(card->uuid, last->uuid, UUID_SIZE) == 0) return true;
    return false;
}

static bool parse_memory(const char *at, struct limits_slot *out) {
    const char *end = at + strlen(at);
    for (out->count = 0; out->count < LIMITS_CARDS; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct cursor entry = {at, comma ? comma : end};
        if (!parse_entry(entry, &out->cards[out->count++]) || is_last_repeated(out)) return false;
        at = entry.end;
        if (at == end) return true;
    }
    return false;
}

static bool parse_cores(const char *cores, uint32_t *out) {
    struct cursor text = trimmed(cores, cores + strlen(cores));
    uint64_t value;
    if (parse_digits(&text, 3, &value) == 0 || text.at != text.end || value > FULL_CORES) return false;
    *out = (uint32_t)value;
    return true;
}

/* Index of `name` in `names`; index 0, the default, where `name` is NULL. False where the name is unknown. */
static bool parse_name(const char *name, const char *const names[], uint32_t count, uint32_t *index) {
    for (*index = 0; name && *index < count; (*index)++)
        if (strcmp(name, names[*index]) == 0) return true;
    return !name;
}

static bool parse_policies(const struct limits_text *text, struct limits_slot *out) {
    static const char *const compute[POLICY_COUNT] = {"fixed", "burst", "best-effort"};
    static const char *const memory[MEMORY_POLICIES] = {"refuse", "spill"};
    return parse_name(text->compute_policy, compute, POLICY_COUNT, &out->compute_policy) &&
           parse_name(text->memory_policy, memory, MEMORY_POLICIES, &out->memory_policy);
}

bool limits_parse(const struct limits_text *text, struct limits_slot *out) {
    uint32_t percent = FULL_CORES;
    memset(out, 0, sizeof *out);
    out->count = 1;
    out->cards[0].memory = UNLIMITED;
    if (text->memory) out->cards[0].memory = 0;
    if (text->memory && !parse_memory(text->memory, out)) return false;
    if (text->cores && !parse_cores(text->cores, &percent)) return false;
    if (!parse_policies(text, out)) return false;
    for (uint32_t i = 0; i < out->count; i++) out->cards[i].cores = percent;
    return true;
}
