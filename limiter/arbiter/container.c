#include "container.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card_board.h"
#include "common/clock.h"
#include "common/log.h"
#include "demand.h"
#include "listening_socket.h"

/* Of all of a container's processes: more than 256 in turn on eight cards send, and what the arbiter can bear of
 * several containers that flood it. */
enum { MESSAGES_A_SECOND = 10000 };

static ino_t inode_of(int parent, const char *name) {
    struct stat status;
    return fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

bool container_open(struct container *container, int parent, const char *name) {
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 || strlen(name) > NAME_MAX) return false;
    *container = (struct container){.is_taken = true,
                                    .door = {.fd = -1},
                                    .folder = folder,
                                    .region = -1,
                                    .rate = rate_limit_new(MESSAGES_A_SECOND, clock_now())};
    strcpy(container->name, name); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): its length was looked at */
    container->inode = inode_of(parent, name);
    container_read_limits(container);
    return true;
}

bool container_is_same(const struct container *container, int parent) {
    return inode_of(parent, container->name) == container->inode;
}

void container_mend_socket(struct container *container, void (*knocked)(struct event_source *door)) {
    if (container->door.fd >= 0 && listening_socket_inode(container->folder) == container->listening_socket_inode)
        return;
    event_loop_remove(&container->door);
    container->door = (struct event_source){.ready = knocked, .fd = listening_socket_open(container->folder)};
    if (container->door.fd < 0) return;
    container->listening_socket_inode = listening_socket_inode(container->folder);
    if (!event_loop_add(&container->door)) event_loop_remove(&container->door);
}

static bool read_at(int fd, void *bytes, size_t size, off_t offset) {
    return fd >= 0 && pread(fd, bytes, size, offset) == (ssize_t)size;
}

void container_read_limits(struct container *container) {
    struct limits_file file;
    int fd = openat(container->folder, "limits", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool is_read = read_at(fd, &file, sizeof file, 0);
    if (fd >= 0) close(fd);
    if (!is_read) return;
    bool is_first = container->limits.sequence == 0;
    if (!is_first || !limits_decode(&file, &container->limits)) limits_follow(&file, &container->limits);
}

void container_open_region(struct container *container) {
    if (container->region >= 0) close(container->region);
    container->region = openat(container->folder, "region", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static bool is_row_of(const struct region_card *row, const uint8_t uuid[UUID_SIZE]) {
    return row->taken && memcmp(row->uuid, uuid, UUID_SIZE) == 0;
}

static bool read_row(const struct container *container, unsigned place, struct region_card *row) {
    off_t offset = (off_t)(offsetof(struct region, cards) + place * sizeof *row);
    return read_at(container->region, row, sizeof *row, offset);
}

uint64_t container_leased_until(const struct container *container, const uint8_t uuid[UUID_SIZE], unsigned *row) {
    struct region_card card;
    if (read_row(container, *row, &card) && is_row_of(&card, uuid)) return card.leased_until;
    for (unsigned place = 0; place < REGION_CARDS; place++) {
        if (!read_row(container, place, &card)) return 0;
        if (!is_row_of(&card, uuid)) continue;
        *row = place;
        return card.leased_until;
    }
    return 0;
}

static struct seat *free_seat(struct container *container) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++)
        if (!container->seats[i].board) return &container->seats[i];
    return NULL;
}

struct seat *container_seat(struct container *container, struct card_board *board, uint64_t now) {
    struct demand demand;
    for (unsigned i = 0; i < LIMITS_CARDS; i++)
        if (container->seats[i].board == board) return &container->seats[i];
    struct seat *seat = free_seat(container);
    if (!seat || !demand_of(&container->limits, board->uuid, &demand)) return NULL;
    int tenant = card_board_add(board, container, &demand, now);
    if (tenant == SCHEDULE_NONE) return NULL;
    *seat = (struct seat){.board = board, .tenant = tenant};
    return seat;
}

void container_close(struct container *container) {
    for (unsigned i = 0; i < LIMITS_CARDS; i++)
        if (container->seats[i].board) card_board_remove(container->seats[i].board, container->seats[i].tenant);
    if (container->door.fd >= 0) listening_socket_unlink(container->folder, container->listening_socket_inode);
    event_loop_remove(&container->door);
    if (container->region >= 0) close(container->region);
    close(container->folder);
    container->is_taken = false;
    log_debug("container %s is gone", container->name);
}
