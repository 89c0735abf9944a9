#include "books/physical/descriptors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/* Table entries. key: a serial number, value: the memory number, count: the descriptor, bytes: 0 for a descriptor in
 * the epoll set, else `file_id` of its file. */

static int epoll_set = -1; /* descriptor of the epoll set; -1 = none yet */
static uint64_t last_key;  /* the last serial number that was given */

static bool add_to_set(int descriptor, uint64_t key) {
    if (epoll_set < 0) epoll_set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event no_events = {.data.u64 = key};
    return epoll_ctl(epoll_set, EPOLL_CTL_ADD, descriptor, &no_events) == 0;
}

/* Whether the descriptor is in the set, with the file that it had when it was added: else EPOLL_CTL_MOD fails. */
static bool is_in_set(int descriptor, uint64_t key) {
    struct epoll_event no_events = {.data.u64 = key};
    return epoll_ctl(epoll_set, EPOLL_CTL_MOD, descriptor, &no_events) == 0;
}

/* The key in a line of the epoll set's fdinfo, "tfd: 5 events: 18 data: 2a ..."; 0 for any other line. */
static uint64_t key_of_line(const char *line) {
    const char *data = strncmp(line, "tfd:", 4) == 0 ? strstr(line, "data:") : NULL;
    return data ? strtoull(data + strlen("data:"), NULL, 16) : 0;
}

/* Whether the file with that key is still in the set, whatever descriptors it has in this process. */
static bool is_listed(uint64_t key) {
    char path[64];
    char line[256];
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll_set);
    FILE *fdinfo = fopen(path, "rec"); /* c: no cancellation point */
    bool found = false;
    while (fdinfo && !found && fgets(line, sizeof line, fdinfo)) found = key_of_line(line) == key;
    if (fdinfo) (void)fclose(fdinfo);
    return found;
}

/* Hash of a file's inode and position; 0 where the descriptor is not open. */
static uint64_t file_id(int descriptor) {
    struct stat found;
    if (fstat(descriptor, &found) != 0) return 0;
    uint64_t position = (uint64_t)lseek(descriptor, 0, SEEK_CUR);
    return ((uint64_t)found.st_ino ^ (uint64_t)found.st_dev << 32 ^ position * 0x9e3779b97f4a7c15ULL) | 1;
}

static bool is_open(const struct hash_table_entry *entry) {
    return entry->bytes ? file_id((int)entry->count) == entry->bytes : is_listed(entry->key);
}

void descriptors_add(struct hash_table *descriptors, int descriptor, uint64_t number) {
    if (number == 0) return;
    uint64_t key = ++last_key;
    uint64_t file = add_to_set(descriptor, key) ? 0 : file_id(descriptor);
    hash_table_put(descriptors, (struct hash_table_entry){key, file, number, (uint32_t)descriptor, 0});
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
