#include "hardware/cards.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/card_line.h"
#include "hardware/mutex.h"
#include "hardware/state_directory.h"

#define CONTAINER_VISIBLE "/run/simgpu-visible"
#define SPACE             " \t\r\n"

static pthread_mutex_t cards_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cards cached; /* all cards of the file; under cards_lock */
static int cached_result;
static uint64_t cached_version;
static bool is_reported;

static int by_index(const void *left, const void *right) {
    const struct card *a = left;
    const struct card *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

/* Whether the line has no card: it is empty or a comment. */
static bool is_blank(const char *line) {
    while (*line != '\0' && strchr(SPACE, *line)) line++;
    return *line == '\0' || *line == '#';
}

static int parse_lines(FILE *file, struct cards *out) {
    char *line = NULL;
    size_t size = 0;
    int result = 0;
    while (result == 0 && getline(&line, &size, file) != -1) {
        if (is_blank(line)) continue;
        if (out->count == MAX_CARDS || !card_line_parse(line, &out->card[out->count])) result = -EINVAL;
        out->count++;
    }
    free(line);
    return result;
}

static int parse_file(const char *path, struct cards *out) {
    out->count = 0;
    FILE *file = fopen(path, "re");
    if (!file) return -ENOENT;
    int result = parse_lines(file, out);
    (void)fclose(file);
    if (result != 0 && !is_reported) {
        is_reported = true;
        (void)fprintf(stderr, "simgpu: %s: card %u: malformed line; simgpu/README.md lists the fields\n", path,
                      out->count);
    }
    if (result == 0) qsort(out->card, out->count, sizeof(struct card), by_index);
    return result;
}

/* Reads the file into `cached` unless `cached` is up to date. Under cards_lock. */
static int refresh(void) {
    char path[STATE_PATH_SIZE];
    bool is_settled;
    state_directory_path(path, "cards");
    uint64_t version = file_version(path, &is_settled);
    if (version == 0) {
        cached_version = 0;
        return -ENOENT;
    }
    if (version != cached_version || !is_settled) {
        cached_result = parse_file(path, &cached);
        cached_version = version;
    }
    return cached_result;
}

static bool is_listed(FILE *visible, const char *uuid) {
    char line[256];
    (void)fseek(visible, 0, SEEK_SET);
    while (fgets(line, sizeof line, visible)) {
        char *rest = line;
        if (strcmp(strsep(&rest, SPACE), uuid) == 0) return true;
    }
    return false;
}

static FILE *open_visible(void) {
    char path[STATE_PATH_SIZE];
    state_directory_path(path, "visible");
    FILE *file = fopen(path, "re");
    return file ? file : fopen(CONTAINER_VISIBLE, "re");
}

static void keep_visible(struct cards *cards) {
    FILE *visible = open_visible();
    unsigned kept = 0;
    if (!visible) return;
    for (unsigned i = 0; i < cards->count; i++)
        if (is_listed(visible, cards->card[i].uuid)) cards->card[kept++] = cards->card[i];
    cards->count = kept;
    (void)fclose(visible);
}

static int copy_all(struct cards *out) {
    HOLD_MUTEX(cards_lock);
    int result = refresh();
    if (result == 0) *out = cached;
    return result;
}

int cards_visible(struct cards *out) {
    int result = copy_all(out);
    if (result == 0) keep_visible(out);
    return result;
}

bool card_find(const char *uuid, struct card *out) {
    bool found = false;
    HOLD_MUTEX(cards_lock);
    int result = refresh();
    for (unsigned i = 0; result == 0 && !found && i < cached.count; i++) {
        found = strcmp(cached.card[i].uuid, uuid) == 0;
        if (found) *out = cached.card[i];
    }
    return found;
}

bool uuid_matches(const char *uuid, const char *text) {
    size_t length = strlen(text);
    return length > 4 && strncasecmp(text, "GPU-", 4) == 0 && strncasecmp(uuid, text, length) == 0;
}
