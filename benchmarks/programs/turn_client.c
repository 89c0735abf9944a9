#include "turn_client.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "now.h"

void fail(const char *what) {
    perror(what);
    exit(EXIT_FAILURE);
}

int open_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) fail("a path is too long");
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail(path);
    return fd;
}

static int page_of(int fd) {
    struct arbitration_welcome welcome;
    union {
        struct cmsghdr aligned;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec piece = {.iov_base = &welcome, .iov_len = sizeof welcome};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    int page;
    if (recvmsg(fd, &message, 0) != (ssize_t)sizeof welcome || !CMSG_FIRSTHDR(&message)) fail("no welcome");
    memcpy(&page, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof page);
    return page;
}

const struct arbitration_page *join(int fd, const uint8_t uuid[16], uint32_t abilities) {
    struct arbitration_hello hello = {.version = ARBITRATION_VERSION, .abilities = abilities};
    memcpy(hello.magic, ARBITRATION_MAGIC, sizeof hello.magic);
    memcpy(hello.uuid, uuid, sizeof hello.uuid);
    if (send(fd, &hello, sizeof hello, 0) != (ssize_t)sizeof hello) fail("hello");
    void *page = mmap(NULL, sizeof(struct arbitration_page), PROT_READ, MAP_SHARED, page_of(fd), 0);
    if (page == MAP_FAILED) fail("page");
    return page;
}

void say(int fd, struct arbitration_message message) {
    if (send(fd, &message, sizeof message, 0) < 0) fail("the arbiter has hung up");
}

uint32_t await_turn(const struct arbitration_page *page, uint32_t last, uint64_t until) {
    struct timespec slice = {.tv_nsec = 10000000};
    for (;;) {
        uint32_t turn = __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE);
        if ((turn && turn != last) || now_ns() > until) return turn;
        syscall(SYS_futex, &page->turn, FUTEX_WAIT, turn, &slice, NULL, 0);
    }
}
