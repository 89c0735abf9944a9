#include "common/sm_percentage.h"

#include <stdbool.h>
#include <stddef.h>

enum { WHOLE_PERCENT = 100, MOST_DIGITS = 3 };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whether the rest of a number, from its decimal point on, is well formed; `is_fraction` where it is not zero. */
static bool read_rest(const char *text, bool *is_fraction) {
    *is_fraction = false;
    if (*text == '.')
        for (text++; is_digit(*text); text++) *is_fraction = *is_fraction || *text != '0';
    return *text == '\0';
}

unsigned sm_percentage_named(const char *text) {
    unsigned percent = 0;
    size_t digits = 0;
    bool is_fraction = false;
    if (!text) return 0;
    for (; is_digit(text[digits]) && digits < MOST_DIGITS; digits++)
        percent = percent * 10 + (unsigned)(text[digits] - '0');
    if (digits == 0 || !read_rest(text + digits, &is_fraction)) return 0;
    percent += is_fraction ? 1 : 0;
    return percent <= WHOLE_PERCENT ? percent : 0;
}

static unsigned part_of(unsigned cap, unsigned processes) {
    unsigned part = processes ? cap / processes : cap;
    return part || !cap ? part : 1;
}

unsigned sm_percentage_of_process(unsigned cap, unsigned own, unsigned processes) {
    unsigned part = part_of(cap, processes);
    if (!part) return own;
    return own && own < part ? own : part;
}
