#include "containers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "card_board.h"
#include "common/log.h"
#include "connections.h"
#include "container.h"
#include "demand.h"
#include "event_loop.h"

enum { CONTAINERS = 1024, ADMISSIONS = 300 };

static struct container containers[CONTAINERS];
static unsigned count;
static int directory = -1;
static bool is_changed;

/* What happened does not matter: all is looked at. */
static void hear_change(struct event_source *watch) {
    char events[4096];
    while (read(watch->fd, events, sizeof events) > 0) continue;
    is_changed = true;
}

static struct event_source watch = {.ready = hear_change, .fd = -1};

/* Without it, as where there are too many watches, the tick has to do. */
static void watch_changes(const char *path) {
    watch.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch.fd < 0) return;
    inotify_add_watch(watch.fd, path, IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR);
    event_loop_add(&watch);
}

bool containers_open(const char *path) {
    directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return false;
    watch_changes(path);
    is_changed = true;
    return true;
}

static struct container *find(const char *name) {
    for (unsigned i = 0; i < CONTAINERS; i++)
        if (containers[i].is_taken && strcmp(containers[i].name, name) == 0) return &containers[i];
    return NULL;
}

static struct container *add(const char *name) {
    for (unsigned i = 0; i < CONTAINERS; i++) {
        if (containers[i].is_taken) continue;
        if (!container_open(&containers[i], directory, name)) return NULL;
        containers[i].admissions = ADMISSIONS;
        count++;
        return &containers[i];
    }
    log_warn("there are more than %d containers: those beyond have no arbiter", CONTAINERS);
    return NULL;
}

static void drop(struct container *container) {
    connections_close(container);
    container_close(container);
    count--;
}

/* Its directory for the socket may be made later: looked at again once it is watched. */
static void open_door(struct container *container) {
    char path[32];
    container_mend_socket(container, connections_accept);
    if (container->door.fd >= 0 || watch.fd < 0) return;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", container->folder);
    inotify_add_watch(watch.fd, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    container_mend_socket(container, connections_accept);
}

/* A name that starts with a dot is somebody's temporary one. */
static void see(const char *name) {
    if (name[0] == '.') return;
    struct container *container = find(name);
    if (container && !container_is_same(container, directory)) {
        drop(container);
        container = NULL;
    }
    if (!container) container = add(name);
    if (!container) return;
    container->is_seen = true;
    open_door(container);
}

static void see_all(void) {
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries) {
        if (fd >= 0) close(fd);
        return;
    }
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) see(entry->d_name);
    closedir(entries);
}

static void scan(void) {
    is_changed = false;
    for (unsigned i = 0; i < CONTAINERS; i++) containers[i].is_seen = false;
    see_all();
    for (unsigned i = 0; i < CONTAINERS; i++)
        if (containers[i].is_taken && !containers[i].is_seen) drop(&containers[i]);
}

void containers_follow(void) {
    if (is_changed) scan();
}

static void follow_limits(struct container *container, uint64_t now) {
    container_read_limits(container);
    for (unsigned i = 0; i < LIMITS_CARDS; i++) {
        struct seat *seat = &container->seats[i];
        struct demand demand;
        if (!seat->board) continue;
        demand_of(&container->limits, seat->board->uuid, &demand);
        card_board_change(seat->board, seat->tenant, &demand, now);
    }
}

static void tick(struct container *container, uint64_t now) {
    container->admissions = ADMISSIONS;
    if (container->door.fd >= 0) event_loop_mute(&container->door, false);
    follow_limits(container, now);
}

void containers_tick(uint64_t now) {
    scan();
    for (unsigned i = 0; i < CONTAINERS; i++)
        if (containers[i].is_taken) tick(&containers[i], now);
}

unsigned containers_count(void) { return count; }

void containers_close(void) {
    for (unsigned i = 0; i < CONTAINERS; i++)
        if (containers[i].is_taken) drop(&containers[i]);
}
