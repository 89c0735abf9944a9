#include "arbiter/connection/listening_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"

#define DIRECTORY      "arbiter"
#define NAME           "socket"
#define TEMPORARY_NAME ".socket.new"

enum { BACKLOG = 128, MODE_ANY_USER = 0666 };

/* The path of a Unix socket may have 107 bytes only, so the directory is named by its descriptor. */
static bool bind_in(int fd, int directory) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/" TEMPORARY_NAME, directory);
    unlinkat(directory, TEMPORARY_NAME, 0);
    return bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
}

/* The socket gets its final name after listen(), so that a process that finds it can connect. */
static bool publish_socket(int fd, int directory) {
    return bind_in(fd, directory) && fchmodat(directory, TEMPORARY_NAME, MODE_ANY_USER, 0) == 0 &&
           listen(fd, BACKLOG) == 0 && renameat(directory, TEMPORARY_NAME, directory, NAME) == 0;
}

static int listen_in(int directory) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && publish_socket(fd, directory)) return fd;
    log_warn("cannot create a container's arbiter/socket, so it uses the card without the arbiter: %s",
             strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

int listening_socket_open(int container_fd) {
    int directory = openat(container_fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) return -1;
    int fd = listen_in(directory);
    close(directory);
    return fd;
}

ino_t listening_socket_inode(int container_fd) {
    struct stat status;
    return fstatat(container_fd, DIRECTORY "/" NAME, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

void listening_socket_unlink(int container_fd, ino_t inode) {
    if (listening_socket_inode(container_fd) == inode) unlinkat(container_fd, DIRECTORY "/" NAME, 0);
}
