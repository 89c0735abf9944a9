#include "common/text.h"

#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 20 }; /* of a decimal number of 64 bits */

static unsigned digit_of(char c) {
    if (c >= '0' && c <= '9') return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f') return (unsigned)(c - 'a') + 10;
    return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : UINT32_MAX;
}

static uint64_t parse(const char *text, unsigned base) {
    uint64_t number = 0;
    while (*text == ' ' || *text == '\t') text++;
    for (; digit_of(*text) < base; text++) number = number * base + digit_of(*text);
    return number;
}

uint64_t text_number(const char *text) { return parse(text, 10); }

uint64_t text_hex(const char *text) { return parse(text, 16); }

char *text_append(char *text, const char *more) {
    memcpy(text + strlen(text), more, strlen(more) + 1);
    return text;
}

char *text_append_number(char *text, uint64_t number) {
    char digits[DIGITS_MAX + 1] = {0};
    int first = DIGITS_MAX;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    return text_append(text, digits + first);
}

char *text_copy(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}
