/* The functions by which compilers copy, fill and compare memory, and those of <string.h> that this library calls. They
 * are not exported: only this library uses them, so that it needs none that another library may replace. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The compiler must not turn a loop here into a call of the function that the loop implements. */
#define PLAIN __attribute__((no_builtin, used))

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

/* NOLINTBEGIN(readability-non-const-parameter) */

PLAIN void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    char *out = to;
    const char *in = from;
    for (; size >= sizeof(word); size -= sizeof(word), out += sizeof(word), in += sizeof(word))
        *(word *)out = *(const word *)in;
    while (size--) *out++ = *in++;
    return to;
}

PLAIN void *memmove(void *to, const void *from, size_t size) {
    char *out = to;
    const char *in = from;
    if (out <= in)
        while (size--) *out++ = *in++;
    else
        while (size--) out[size] = in[size];
    return to;
}

PLAIN void *memset(void *to, int value, size_t size) {
    char *out = to;
    word pattern = (uint8_t)value * UINT64_C(0x0101010101010101);
    for (; size >= sizeof(word); size -= sizeof(word), out += sizeof(word)) *(word *)out = pattern;
    while (size--) *out++ = (char)value;
    return to;
}

PLAIN int memcmp(const void *first, const void *second, size_t size) {
    const uint8_t *a = first, *b = second;
    for (; size; size--, a++, b++)
        if (*a != *b) return *a - *b;
    return 0;
}

/* Compilers call it for memcmp() == 0. */
PLAIN int bcmp(const void *first, const void *second, size_t size) { return memcmp(first, second, size); }

PLAIN void *memchr(const void *text, int wanted, size_t size) {
    for (const char *at = text; size; size--, at++)
        if (*at == (char)wanted) return (void *)at;
    return NULL;
}

PLAIN size_t strlen(const char *text) {
    const char *end = text;
    while (*end) end++;
    return (size_t)(end - text);
}

PLAIN int strncmp(const char *first, const char *second, size_t size) {
    for (; size; size--, first++, second++)
        if (*first != *second || !*first) return (uint8_t)*first - (uint8_t)*second;
    return 0;
}

PLAIN int strcmp(const char *first, const char *second) { return strncmp(first, second, SIZE_MAX); }

PLAIN char *strchr(const char *text, int wanted) {
    for (;; text++) {
        if (*text == (char)wanted) return (char *)text;
        if (!*text) return NULL;
    }
}

PLAIN char *strrchr(const char *text, int wanted) {
    const char *last = NULL;
    for (;; text++) {
        if (*text == (char)wanted) last = text;
        if (!*text) return (char *)last;
    }
}

PLAIN char *strstr(const char *text, const char *wanted) {
    for (; *text; text++)
        if (strncmp(text, wanted, strlen(wanted)) == 0) return (char *)text;
    return NULL;
}

/* NOLINTEND(readability-non-const-parameter) */
