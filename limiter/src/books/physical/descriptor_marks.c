#include "books/physical/descriptor_marks.h"

#include <string.h>

#include "common/system_calls.h"
#include "common/text.h"

/* Since Linux 3.15; the headers of glibc 2.17 do not have it. */
#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

/* The lowest place of a mark: beyond the end of every file, and a valid offset in one. */
#define FIRST_MARK (1ULL << 62)

/* In a line of fdinfo, "lock: 1: OFDLCK ADVISORY READ -1 00:06:4 4611686018427387909 4611686018427387909", the place is
 * the fifth word after the kind of the lock. */
static const char KIND[] = "OFDLCK";
enum { WORDS_TO_PLACE = 5 };

uint64_t descriptor_marks_of(uint64_t number) { return FIRST_MARK | number >> 2; }

bool descriptor_marks_put(int descriptor, uint64_t mark) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)mark, .l_len = 1};
    return system_fcntl(descriptor, F_OFD_SETLK, (long)&lock) == 0;
}

static const char *skip_word(const char *text) {
    while (*text && *text != ' ' && *text != '\n') text++;
    while (*text == ' ') text++;
    return text;
}

static uint64_t mark_in(const char *lock) {
    for (int word = 0; word < WORDS_TO_PLACE; word++) lock = skip_word(lock);
    uint64_t place = text_number(lock);
    return place >= FIRST_MARK ? place : 0;
}

uint64_t descriptor_marks_get(int descriptor) {
    char path[64] = "/proc/self/fdinfo/", text[1024];
    if (descriptor < 0) return 0;
    int fd = system_open(text_append_number(path, (uint64_t)descriptor), O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? system_read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) system_close(fd);
    text[length > 0 ? length : 0] = '\0';
    uint64_t mark = 0;
    for (const char *lock = strstr(text, KIND); lock && !mark; lock = strstr(lock + 1, KIND)) mark = mark_in(lock);
    return mark;
}
