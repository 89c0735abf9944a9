#include "books/descriptors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/* An entry: `key` counts up, `count` is the descriptor, `other` the memory's number, and `bytes` 0 for one in the set,
 * else what tells its file. */
static int set = -1;
static uint64_t last_key;

static bool watch(int descriptor, uint64_t key) {
    if (set < 0) set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event silent = {.data.u64 = key};
    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &silent) == 0;
}

/* Whether the descriptor itself is in the set, with the file that it had then. */
static bool is_watched(int descriptor, uint64_t key) {
    struct epoll_event silent = {.data.u64 = key};
    return epoll_ctl(set, EPOLL_CTL_MOD, descriptor, &silent) == 0;
}

/* Of a line of the set's list, "tfd: 5 events: 18 data: 2a ..."; 0 in any other. */
static uint64_t key_in(const char *line) {
    const char *data = strncmp(line, "tfd:", 4) == 0 ? strstr(line, "data:") : NULL;
    return data ? strtoull(data + strlen("data:"), NULL, 16) : 0;
}

/* Whether its file is in the set still. */
static bool is_listed(uint64_t key) {
    char path[64];
    char line[256];
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", set);
    FILE *list = fopen(path, "re");
    bool found = false;
    while (list && !found && fgets(line, sizeof line, list)) found = key_in(line) == key;
    if (list) (void)fclose(list);
    return found;
}

/* A file and the place in it, as one number; 0 where the descriptor is not open. */
static uint64_t file_of(int descriptor) {
    struct stat found;
    if (fstat(descriptor, &found) != 0) return 0;
    uint64_t place = (uint64_t)lseek(descriptor, 0, SEEK_CUR);
    return ((uint64_t)found.st_ino ^ (uint64_t)found.st_dev << 32 ^ place * 0x9e3779b97f4a7c15ULL) | 1;
}

static bool is_open(const struct hash_table_entry *entry) {
    return entry->bytes ? file_of((int)entry->count) == entry->bytes : is_listed(entry->key);
}

void descriptors_add(struct hash_table *descriptors, int descriptor, uint64_t number) {
    if (number == 0) return;
    uint64_t key = ++last_key;
    uint64_t file = watch(descriptor, key) ? 0 : file_of(descriptor);
    hash_table_put(descriptors, (struct hash_table_entry){key, file, number, (uint32_t)descriptor, 0});
}

/* The last that had this descriptor; those before it were closed. Its key is 0 where there is none. */
static struct hash_table_entry last_of(const struct hash_table *descriptors, int descriptor) {
    struct hash_table_entry last = {0};
    for (size_t i = 0; i < descriptors->size; i++) {
        const struct hash_table_entry *entry = &descriptors->entries[i];
        if (entry->key > last.key && entry->count == (uint32_t)descriptor) last = *entry;
    }
    return last;
}

uint64_t descriptors_find(const struct hash_table *descriptors, int descriptor) {
    struct hash_table_entry last = last_of(descriptors, descriptor);
    bool is_same = last.bytes ? file_of(descriptor) == last.bytes : is_watched(descriptor, last.key);
    return last.key != 0 && is_same ? last.other : 0;
}

void descriptors_remove(struct hash_table *descriptors, int descriptor) {
    hash_table_take(descriptors, last_of(descriptors, descriptor).key);
}

/* The first entry of that memory, or NULL. */
static const struct hash_table_entry *first_of(const struct hash_table *descriptors, uint64_t number, bool open) {
    for (size_t i = 0; i < descriptors->size; i++) {
        const struct hash_table_entry *entry = &descriptors->entries[i];
        if (entry->key != 0 && entry->other == number && (!open || is_open(entry))) return entry;
    }
    return NULL;
}

bool descriptors_are_open(const struct hash_table *descriptors, uint64_t number) {
    return first_of(descriptors, number, true) != NULL;
}

bool descriptors_forget(struct hash_table *descriptors, uint64_t number) {
    const struct hash_table_entry *entry = first_of(descriptors, number, false);
    bool any = entry != NULL;
    for (; entry; entry = first_of(descriptors, number, false)) hash_table_take(descriptors, entry->key);
    return any;
}

/* The set is left open, for by now its number may be another file's, of a program that closed all it did not know. */
void descriptors_forget_all(struct hash_table *descriptors) {
    hash_table_clear(descriptors);
    set = -1;
}
