#include "arbiter/container/containers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "arbiter/connection/event_loop.h"
#include "arbiter/container/connections.h"
#include "arbiter/container/container.h"
#include "arbiter/container/jobs.h"
#include "arbiter/container/tenancy.h"
#include "common/clock.h"
#include "common/log.h"

/* ACCEPTS_PER_REFRESH: connections that one container may open within half a second, so that a container that does
 * nothing else cannot keep the arbiter busy. */
enum { CONTAINERS_MAX = 1024, ACCEPTS_PER_REFRESH = 300 };

static struct container containers[CONTAINERS_MAX];
static unsigned count;
static int root_fd = -1;
static bool is_rescan_needed;

/* The events are not evaluated, because the whole directory is scanned after any of them. */
static void on_directory_change(struct event_source *watch) {
    char events[4096];
    while (read(watch->fd, events, sizeof events) > 0) continue;
    is_rescan_needed = true;
}

static struct event_source watch = {.ready = on_directory_change, .fd = -1};

/* Without a watch, for example because the user has too many, containers_refresh finds changes within half a second. */
static void watch_changes(const char *path) {
    watch.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch.fd < 0) return;
    inotify_add_watch(watch.fd, path, IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR);
    event_loop_add(&watch);
}

bool containers_open(const char *path) {
    root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) return false;
    watch_changes(path);
    is_rescan_needed = true;
    return true;
}

static struct container *find_container(const char *name) {
    for (unsigned i = 0; i < CONTAINERS_MAX; i++)
        if (containers[i].is_taken && strcmp(containers[i].name, name) == 0) return &containers[i];
    return NULL;
}

static struct container *add_container(const char *name) {
    for (unsigned i = 0; i < CONTAINERS_MAX; i++) {
        if (containers[i].is_taken) continue;
        if (!container_open(&containers[i], root_fd, name)) return NULL;
        containers[i].accepts_left = ACCEPTS_PER_REFRESH;
        count++;
        return &containers[i];
    }
    log_warn("there are more than %d containers: the others get no socket, and use the card without the arbiter",
             CONTAINERS_MAX);
    return NULL;
}

static void remove_container(struct container *container) {
    jobs_drop(container);
    connections_close(container);
    tenancy_end_all(container, clock_now());
    container_close(container);
    count--;
}

/* The container's directory `arbiter` may be created later, so it is watched for. The second attempt covers one that
 * was created before the watch. */
static void ensure_listener(struct container *container) {
    char path[32];
    container_ensure_listener(container, connections_accept);
    if (container->listener.fd >= 0 || watch.fd < 0) return;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", container->directory_fd);
    inotify_add_watch(watch.fd, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    container_ensure_listener(container, connections_accept);
}

/* A name with a leading dot belongs to a directory that is still being prepared. */
static void update_container(const char *name) {
    if (name[0] == '.') return;
    struct container *container = find_container(name);
    if (container && !container_is_same(container, root_fd)) {
        remove_container(container);
        container = NULL;
    }
    if (!container) container = add_container(name);
    if (!container) return;
    container->is_seen = true;
    ensure_listener(container);
}

static void update_all(void) {
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries) {
        if (fd >= 0) close(fd);
        return;
    }
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) update_container(entry->d_name);
    closedir(entries);
}

static void scan(void) {
    is_rescan_needed = false;
    for (unsigned i = 0; i < CONTAINERS_MAX; i++) containers[i].is_seen = false;
    update_all();
    for (unsigned i = 0; i < CONTAINERS_MAX; i++)
        if (containers[i].is_taken && !containers[i].is_seen) remove_container(&containers[i]);
}

void containers_rescan_if_changed(void) {
    if (is_rescan_needed) scan();
}

static void refresh(struct container *container, uint64_t now) {
    container->accepts_left = ACCEPTS_PER_REFRESH;
    if (container->listener.fd >= 0) event_loop_mute(&container->listener, false);
    container_read_limits(container);
    if (tenancy_has_left_group(container)) {
        jobs_drop(container);
        connections_close(container); /* its processes connect anew, each as a tenant of its own */
        tenancy_end_all(container, now);
    }
    tenancy_update_all(container, now);
    jobs_refresh(container);
}

void containers_refresh(uint64_t now) {
    scan();
    connections_close_silent(now);
    for (unsigned i = 0; i < CONTAINERS_MAX; i++)
        if (containers[i].is_taken) refresh(&containers[i], now);
}

unsigned containers_count(void) { return count; }

void containers_close(void) {
    for (unsigned i = 0; i < CONTAINERS_MAX; i++)
        if (containers[i].is_taken) remove_container(&containers[i]);
}
