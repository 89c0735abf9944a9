#include "books/physical/descriptors.h"

#include <string.h>
#include <sys/epoll.h>

#include "common/system_calls.h"
#include "common/text.h"

/* Table entries. key: a serial number, value: the memory number, count: the descriptor, bytes: 0 for a descriptor in
 * the epoll set, else `file_id` of its file. */

static int epoll_set = -1; /* descriptor of the epoll set; -1 = none yet */
static uint64_t last_key;  /* the last serial number that was given */

static bool add_to_set(int descriptor, uint64_t key) {
    if (epoll_set < 0) epoll_set = system_epoll_create(EPOLL_CLOEXEC);
    struct epoll_event no_events = {.data.u64 = key};
    return system_epoll_control(epoll_set, EPOLL_CTL_ADD, descriptor, &no_events) == 0;
}

/* Whether the descriptor is in the set, with the file that it had when it was added: else EPOLL_CTL_MOD fails. */
static bool is_in_set(int descriptor, uint64_t key) {
    struct epoll_event no_events = {.data.u64 = key};
    return system_epoll_control(epoll_set, EPOLL_CTL_MOD, descriptor, &no_events) == 0;
}

/* The key in a line of the epoll set's fdinfo, "tfd: 5 events: 18 data: 2a ..."; 0 for any other line. */
static uint64_t key_of_line(const char *line) {
    const char *data = strncmp(line, "tfd:", 4) == 0 ? strstr(line, "data:") : NULL;
    return data ? text_hex(data + strlen("data:")) : 0;
}

/* Text of a file that is read in pieces, up to its next end of line. */
struct lines {
    int fd;
    size_t length; /* of what was read and not used yet */
    char text[512];
};

/* The next line, without its end, in `line`, cut to what fits; false at the end of the file. */
static bool next_line(struct lines *lines, char line[256]) {
    size_t length = 0;
    for (;;) {
        char *end = memchr(lines->text, '\n', lines->length);
        size_t used = end ? (size_t)(end - lines->text) : lines->length;
        for (size_t i = 0; i < used && length < 255; i++) line[length++] = lines->text[i];
        line[length] = '\0';
        lines->length -= end ? used + 1 : used;
        memmove(lines->text, lines->text + (end ? used + 1 : used), lines->length);
        if (end) return true;
        ssize_t got = system_read(lines->fd, lines->text, sizeof lines->text);
        if (got <= 0) return length > 0;
        lines->length = (size_t)got;
    }
}

/* Whether the file with that key is still in the set, whatever descriptors it has in this process. */
static bool is_listed(uint64_t key) {
    char path[64] = "/proc/self/fdinfo/";
    char line[256];
    text_append_number(path, (uint64_t)epoll_set);
    struct lines lines = {.fd = epoll_set < 0 ? -1 : system_open(path, O_RDONLY | O_CLOEXEC)};
    bool found = false;
    while (lines.fd >= 0 && !found && next_line(&lines, line)) found = key_of_line(line) == key;
    if (lines.fd >= 0) system_close(lines.fd);
    return found;
}

/* Hash of a file's inode and position; 0 where the descriptor is not open. */
static uint64_t file_id(int descriptor) {
    struct stat found = {0};
    if (system_fstat(descriptor, &found) != 0) return 0;
    uint64_t position = (uint64_t)system_seek(descriptor, 0, SEEK_CUR);
    return ((uint64_t)found.st_ino ^ (uint64_t)found.st_dev << 32 ^ position * 0x9e3779b97f4a7c15ULL) | 1;
}

static bool is_open(const struct hash_table_entry *entry) {
    return entry->bytes ? file_id((int)entry->count) == entry->bytes : is_listed(entry->key);
}

void descriptors_add(struct hash_table *descriptors, int descriptor, uint64_t number) {
    if (number == 0) return;
    uint64_t key = ++last_key;
    uint64_t file = add_to_set(descriptor, key) ? 0 : file_id(descriptor);
    hash_table_put(descriptors, (struct hash_table_entry){
                                    .key = key, .bytes = file, .value = number, .count = (uint32_t)descriptor});
}

/* The newest entry of a descriptor, since older ones were closed; its key is 0 where there is none. */
static struct hash_table_entry newest_of(const struct hash_table *descriptors, int descriptor) {
    struct hash_table_entry newest = {0};
    for (size_t i = 0; i < descriptors->size; i++) {
        const struct hash_table_entry *entry = &descriptors->entries[i];
        if (entry->key > newest.key && entry->count == (uint32_t)descriptor) newest = *entry;
    }
    return newest;
}

uint64_t descriptors_find(const struct hash_table *descriptors, int descriptor) {
    struct hash_table_entry newest = newest_of(descriptors, descriptor);
    bool is_same = newest.bytes ? file_id(descriptor) == newest.bytes : is_in_set(descriptor, newest.key);
    return newest.key != 0 && is_same ? newest.value : 0;
}

void descriptors_remove(struct hash_table *descriptors, int descriptor) {
    hash_table_take(descriptors, newest_of(descriptors, descriptor).key);
}

/* An entry of the memory, or NULL; with `must_be_open`, one whose file is open. */
static const struct hash_table_entry *find_entry(const struct hash_table *descriptors, uint64_t number,
                                                 bool must_be_open) {
    for (size_t i = 0; i < descriptors->size; i++) {
        const struct hash_table_entry *entry = &descriptors->entries[i];
        if (entry->key != 0 && entry->value == number && (!must_be_open || is_open(entry))) return entry;
    }
    return NULL;
}

bool descriptors_are_open(const struct hash_table *descriptors, uint64_t number) {
    return find_entry(descriptors, number, true) != NULL;
}

bool descriptors_forget(struct hash_table *descriptors, uint64_t number) {
    const struct hash_table_entry *entry = find_entry(descriptors, number, false);
    bool had_entries = entry != NULL;
    for (; entry; entry = find_entry(descriptors, number, false)) hash_table_take(descriptors, entry->key);
    return had_entries;
}

/* Does not close the epoll set: a program that closed all unknown descriptors may have another file in its place. */
void descriptors_forget_all(struct hash_table *descriptors) {
    hash_table_clear(descriptors);
    epoll_set = -1;
}
