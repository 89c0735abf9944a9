/* Reads `cards` and the list of visible UUIDs. */
#define _GNU_SOURCE
#include "simgpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DEFAULT_DIRECTORY "/run/simgpu"
#define CONTAINER_VISIBLE "/run/simgpu-visible"
#define SETTLED_NS        INT64_C(50000000) /* coarser than any file system's clock tick */

static pthread_mutex_t cards_lock = PTHREAD_MUTEX_INITIALIZER;
static Cards cached; /* every card of the file; written under cards_lock */
static int cached_result;
static uint64_t cached_version;
static bool complained;

void sim_path(char out[SIM_PATH_SIZE], const char *name) {
    const char *directory = getenv("SIMGPU_STATE");
    if (directory == NULL || *directory == '\0') {
        directory = DEFAULT_DIRECTORY;
    }
    (void)snprintf(out, SIM_PATH_SIZE, "%s/%s", directory, name);
}

uint64_t sim_file_version(const char *path, bool *settled) {
    struct stat found;
    struct timespec now;
    if (stat(path, &found) != 0) {
        *settled = true;
        return 0;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t changed = (int64_t)found.st_ctim.tv_sec * 1000000000 + found.st_ctim.tv_nsec;
    int64_t age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - changed;
    *settled = age > SETTLED_NS || age < 0;
    uint64_t version = (uint64_t)changed * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)found.st_ino << 20;
    return (version ^ (uint64_t)found.st_size) | 1;
}

static int by_index(const void *left, const void *right) {
    const Card *a = left;
    const Card *b = right;
    return (a->index > b->index) - (a->index < b->index);
}

static bool blank(const char *line) {
    line += strspn(line, " \t\r\n");
    return *line == '\0' || *line == '#';
}

static int parse_lines(FILE *file, Cards *out) {
    char *line = NULL;
    size_t size = 0;
    int result = 0;
    while (result == 0 && getline(&line, &size, file) != -1) {
        if (blank(line)) {
            continue;
        }
        if (out->count == SIM_MAX_CARDS || !sim_parse_card(line, &out->card[out->count])) {
            result = -EINVAL;
        }
        out->count++;
    }
    free(line);
    return result;
}

static int parse_file(const char *path, Cards *out) {
    out->count = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -ENOENT;
    }
    int result = parse_lines(file, out);
    (void)fclose(file);
    if (result != 0 && !complained) {
        complained = true;
        (void)fprintf(stderr, "simgpu: %s: card %u cannot be read\n", path, out->count);
    }
    if (result == 0) {
        qsort(out->card, out->count, sizeof(Card), by_index);
    }
    return result;
}

/* Under cards_lock: `cached` is the file as it is now. */
static int refresh(void) {
    char path[SIM_PATH_SIZE];
    bool settled;
    sim_path(path, "cards");
    uint64_t version = sim_file_version(path, &settled);
    if (version == 0) {
        cached_version = 0;
        return -ENOENT;
    }
    if (version != cached_version || !settled) {
        cached_result = parse_file(path, &cached);
        cached_version = version;
    }
    return cached_result;
}

static bool listed(FILE *visible, const char *uuid) {
    char line[256];
    rewind(visible);
    while (fgets(line, sizeof line, visible) != NULL) {
        line[strcspn(line, " \t\r\n")] = '\0';
        if (strcmp(line, uuid) == 0) {
            return true;
        }
    }
    return false;
}

static FILE *open_visible(void) {
    char path[SIM_PATH_SIZE];
    sim_path(path, "visible");
    FILE *file = fopen(path, "re");
    return file != NULL ? file : fopen(CONTAINER_VISIBLE, "re");
}

static void keep_visible(Cards *cards) {
    FILE *visible = open_visible();
    unsigned kept = 0;
    if (visible == NULL) {
        return;
    }
    for (unsigned i = 0; i < cards->count; i++) {
        if (listed(visible, cards->card[i].uuid)) {
            cards->card[kept++] = cards->card[i];
        }
    }
    cards->count = kept;
    (void)fclose(visible);
}

int sim_cards(Cards *out) {
    (void)pthread_mutex_lock(&cards_lock);
    int result = refresh();
    if (result == 0) {
        *out = cached;
    }
    (void)pthread_mutex_unlock(&cards_lock);
    if (result == 0) {
        keep_visible(out);
    }
    return result;
}

bool sim_card(const char *uuid, Card *out) {
    bool found = false;
    (void)pthread_mutex_lock(&cards_lock);
    int result = refresh();
    for (unsigned i = 0; result == 0 && !found && i < cached.count; i++) {
        found = strcmp(cached.card[i].uuid, uuid) == 0;
        if (found) {
            *out = cached.card[i];
        }
    }
    (void)pthread_mutex_unlock(&cards_lock);
    return found;
}

bool sim_uuid_matches(const char *uuid, const char *text) {
    size_t length = strlen(text);
    return length > 4 && strncasecmp(text, "GPU-", 4) == 0 && strncasecmp(uuid, text, length) == 0;
}
