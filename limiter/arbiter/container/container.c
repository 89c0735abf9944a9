#include "arbiter/container/container.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arbiter/connection/listening_socket.h"
#include "common/arbitration.h"
#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/region_layout.h"
#include "common/share_tokens.h"

/* Limit for all processes of a container together: more than 256 processes that take turns on eight cards send, and few
 * enough that several containers which send as much as they can do not overload the arbiter. */
enum { MESSAGES_PER_SECOND = 10000 };

/* No debt is waited for longer at once: the region's content is not trusted. */
#define DEBT_TIME_MAX (60000 * NS_PER_MS)

static ino_t inode_of(int parent_fd, const char *name) {
    struct stat status;
    return fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

bool container_open(struct container *container, int parent_fd, const char *name) {
    int directory_fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory_fd < 0 || strlen(name) > NAME_MAX) return false;
    *container = (struct container){.is_taken = true,
                                    .listener = {.fd = -1},
                                    .directory_fd = directory_fd,
                                    .region_fd = -1,
                                    .rate = rate_limit_new(MESSAGES_PER_SECOND, clock_now())};
    strcpy(container->name, name); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): the length was checked */
    container->directory_inode = inode_of(parent_fd, name);
    container_read_limits(container);
    return true;
}

bool container_is_same(const struct container *container, int parent_fd) {
    return inode_of(parent_fd, container->name) == container->directory_inode;
}

void container_ensure_listener(struct container *container, void (*on_connection)(struct event_source *listener)) {
    if (container->listener.fd >= 0 && listening_socket_inode(container->directory_fd) == container->listener_inode)
        return;
    event_loop_remove(&container->listener);
    container->listener =
        (struct event_source){.ready = on_connection, .fd = listening_socket_open(container->directory_fd)};
    if (container->listener.fd < 0) return;
    container->listener_inode = listening_socket_inode(container->directory_fd);
    if (!event_loop_add(&container->listener)) event_loop_remove(&container->listener);
}

static bool read_at(int fd, void *bytes, size_t size, off_t offset) {
    return fd >= 0 && pread(fd, bytes, size, offset) == (ssize_t)size;
}

void container_read_limits(struct container *container) {
    struct limits_file file;
    int fd = openat(container->directory_fd, "limits", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool is_read = read_at(fd, &file, sizeof file, 0);
    if (fd >= 0) close(fd);
    if (!is_read) return;
    bool is_first = container->limits.sequence == 0;
    if (!is_first || !limits_decode(&file, &container->limits)) limits_update(&file, &container->limits);
}

void container_open_region(struct container *container) {
    if (container->region_fd >= 0) close(container->region_fd);
    container->region_fd = openat(container->directory_fd, "region", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static bool is_row_of_card(const struct region_card *row, const uint8_t uuid[UUID_SIZE]) {
    return row->is_valid && memcmp(row->uuid, uuid, UUID_SIZE) == 0;
}

static bool read_row(const struct container *container, unsigned row_index, struct region_card *row) {
    off_t offset = (off_t)(offsetof(struct region, cards) + row_index * sizeof *row);
    return read_at(container->region_fd, row, sizeof *row, offset);
}

uint64_t container_synchronize_ns(const struct container *container, unsigned row) {
    struct region_activity activity;
    off_t offset = (off_t)(offsetof(struct region, activity) + row * sizeof activity);
    return read_at(container->region_fd, &activity, sizeof activity, offset) ? activity.synchronize_ns : 0;
}

static bool is_work_late(const struct region_card *row, uint64_t now) {
    uint64_t ended_at = row->busy_until - min_u64(row->busy_until, ARBITRATION_BUSY_GRACE_NS);
    return row->holder != 0 && now > saturating_add(ended_at, REGION_LINKED_LATE_AFTER_NS);
}

struct container_window container_window(const struct container *container, unsigned row, uint64_t now) {
    struct region_activity activity;
    struct region_card card;
    off_t offset = (off_t)(offsetof(struct region, activity) + row * sizeof activity);
    bool is_read = read_at(container->region_fd, &activity, sizeof activity, offset) && read_row(container, row, &card);
    if (!is_read) return (struct container_window){0};
    bool is_awaited = (activity.window_state & REGION_WINDOW_AWAITED) != 0;
    return (struct container_window){.number = activity.window,
                                     .batches = activity.window_state & ~(REGION_WINDOW_SERVED | REGION_WINDOW_AWAITED),
                                     .is_at_work = card.holder != 0 && !card.is_waiting,
                                     .is_late = is_awaited && is_work_late(&card, now)};
}

static unsigned fixed_share(const struct container *container, const uint8_t uuid[UUID_SIZE]) {
    uint32_t cores = limits_for_card(&container->limits, uuid).cores;
    bool is_fixed = container->limits.compute_policy == POLICY_FIXED && cores > 0 && cores < FULL_CORES;
    return is_fixed ? cores : 0;
}

uint64_t container_debt(const struct container *container, const uint8_t uuid[UUID_SIZE], unsigned row, uint64_t now) {
    struct region_card card;
    unsigned share = fixed_share(container, uuid);
    if (!share || !read_row(container, row, &card)) return 0;
    int64_t tokens = share_tokens_at(card.tokens, card.refilled_at, share, now);
    return min_u64(share_tokens_time_to_repay(tokens, share), DEBT_TIME_MAX);
}

static struct container_use use_of(const struct region_card *row) {
    return (struct container_use){.busy_until = row->busy_until,
                                  .awaited_until = row->awaited_until,
                                  .gpu_ns = row->gpu_ns,
                                  .throttled_ns = row->throttled_ns,
                                  .is_waiting = row->is_waiting != 0};
}

struct container_use container_use(const struct container *container, const uint8_t uuid[UUID_SIZE],
                                   unsigned *cached_row) {
    struct region_card row;
    if (read_row(container, *cached_row, &row) && is_row_of_card(&row, uuid)) return use_of(&row);
    for (unsigned row_index = 0; row_index < REGION_CARDS && read_row(container, row_index, &row); row_index++) {
        if (!is_row_of_card(&row, uuid)) continue;
        *cached_row = row_index;
        return use_of(&row);
    }
    return (struct container_use){0};
}

/* The part of a slot that says which cards its process has linked. */
struct slot_head {
    uint8_t bytes[offsetof(struct region_slot, linked) + sizeof(uint32_t)];
};

static uint32_t links_of(const struct container *container, uint32_t slot) {
    struct slot_head head;
    uint32_t pid, linked;
    off_t offset = (off_t)(offsetof(struct region, slots) + slot * sizeof(struct region_slot));
    if (!read_at(container->region_fd, &head, sizeof head, offset)) return 0;
    memcpy(&pid, head.bytes, sizeof pid);
    memcpy(&linked, head.bytes + offsetof(struct region_slot, linked), sizeof linked);
    return pid ? linked : 0;
}

static bool is_several(uint32_t cards) { return (cards & (cards - 1)) != 0; }

/* Adds the cards to a set that has one of them, and joins the sets that they have in common. */
static unsigned add_links(uint32_t sets[CONTAINER_LINKED_SETS], unsigned count, uint32_t linked) {
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        if (sets[i] & linked)
            linked |= sets[i];
        else
            sets[kept++] = sets[i];
    }
    sets[kept] = linked;
    return kept + 1;
}

unsigned container_linked_sets(const struct container *container, uint32_t sets[CONTAINER_LINKED_SETS]) {
    uint32_t slots = 0;
    unsigned count = 0;
    if (!read_at(container->region_fd, &slots, sizeof slots, offsetof(struct region_header, slots_high))) return 0;
    for (uint32_t slot = 0; slot < slots && slot < REGION_SLOTS; slot++) {
        uint32_t linked = links_of(container, slot);
        if (is_several(linked)) count = add_links(sets, count, linked);
    }
    return count;
}

void container_close(struct container *container) {
    if (container->listener.fd >= 0) listening_socket_unlink(container->directory_fd, container->listener_inode);
    event_loop_remove(&container->listener);
    if (container->region_fd >= 0) close(container->region_fd);
    close(container->directory_fd);
    container->is_taken = false;
    log_debug("container %s was removed", container->name);
}
