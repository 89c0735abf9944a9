#include "arbiter/connection/handshake.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool handshake_is_hello(const struct arbitration_hello *hello, size_t size) {
    return size == sizeof *hello && memcmp(hello->magic, ARBITRATION_MAGIC, sizeof hello->magic) == 0;
}

static void attach_descriptor(struct msghdr *message, int fd) {
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
}

bool handshake_send(int fd, enum arbitration_result result, int page_fd) {
    struct arbitration_welcome welcome = {.version = ARBITRATION_VERSION, .result = result};
    union {
        struct cmsghdr aligned;
        char room[CMSG_SPACE(sizeof page_fd)];
    } control = {.room = {0}};
    struct iovec piece = {.iov_base = &welcome, .iov_len = sizeof welcome};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    memcpy(welcome.magic, ARBITRATION_MAGIC, sizeof welcome.magic);
    if (page_fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        attach_descriptor(&message, page_fd);
    }
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof welcome;
}

void handshake_refuse(int fd) {
    handshake_send(fd, ARBITRATION_TOO_MANY, -1);
    close(fd);
}

void handshake_close_page_fd(int page_fd) {
    if (page_fd >= 0) close(page_fd);
}
