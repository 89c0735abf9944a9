/* Clients of the arbiter that take turns: arbiter_clients HOLD_US SECONDS SOCKET...
 *
 * Each client connects to a socket of its own, holds each turn for HOLD_US, ends it with no work in flight, and asks
 * for the next. Prints the number of turns, then for each turn the ns from the end of the turn before to the wakeup of
 * the next client. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/arbitration.h"
#include "now.h"

enum { CLIENTS = 1024, KEPT = 200000 };

static uint64_t ended_at; /* atomic: when the last turn ended */
static uint64_t until;    /* when all clients stop */
static struct timespec hold;
static uint32_t taken; /* atomic: number of turns */
static uint32_t waits[KEPT];

static void fail(const char *what) {
    perror(what);
    exit(EXIT_FAILURE);
}

static int open_socket(const char *path) {
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

static const struct arbitration_page *join(int fd) {
    struct arbitration_hello hello = {.version = ARBITRATION_VERSION, .uuid = {1}};
    memcpy(hello.magic, ARBITRATION_MAGIC, sizeof hello.magic);
    if (send(fd, &hello, sizeof hello, 0) != (ssize_t)sizeof hello) fail("hello");
    void *page = mmap(NULL, sizeof(struct arbitration_page), PROT_READ, MAP_SHARED, page_of(fd), 0);
    if (page == MAP_FAILED) fail("page");
    return page;
}

static void say(int fd, struct arbitration_message message) {
    if (send(fd, &message, sizeof message, 0) < 0) fail("the arbiter has hung up");
}

static uint32_t await_turn(const struct arbitration_page *page, uint32_t last) {
    struct timespec slice = {.tv_nsec = 50000000};
    for (;;) {
        uint32_t turn = __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE);
        if ((turn && turn != last) || now_ns() > until) return turn;
        syscall(SYS_futex, &page->turn, FUTEX_WAIT, turn, &slice, NULL, 0);
    }
}

static void note(const struct arbitration_page *page) {
    uint64_t since = now_ns() - __atomic_load_n(&ended_at, __ATOMIC_ACQUIRE);
    if (!__atomic_load_n(&page->contended, __ATOMIC_RELAXED)) return;
    uint32_t number = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    if (number < KEPT) waits[number] = since < UINT32_MAX ? (uint32_t)since : UINT32_MAX;
}

static void *take_turns(void *path) {
    int fd = open_socket(path);
    const struct arbitration_page *page = join(fd);
    for (uint32_t turn = 0; now_ns() < until;) {
        say(fd, (struct arbitration_message){.kind = ARBITRATION_WANT});
        turn = await_turn(page, turn);
        note(page);
        if (hold.tv_nsec) nanosleep(&hold, NULL);
        __atomic_store_n(&ended_at, now_ns(), __ATOMIC_RELEASE);
        say(fd, (struct arbitration_message){.kind = ARBITRATION_DONE, .turn = turn});
    }
    return NULL;
}

int main(int count, char **arguments) {
    static pthread_t threads[CLIENTS];
    if (count < 4 || count - 3 > CLIENTS) return EXIT_FAILURE;
    hold.tv_nsec = atol(arguments[1]) * 1000;
    until = now_ns() + (uint64_t)(atof(arguments[2]) * 1e9);
    for (int i = 3; i < count; i++)
        if (pthread_create(&threads[i - 3], NULL, take_turns, arguments[i]) != 0) fail("thread");
    for (int i = 3; i < count; i++) pthread_join(threads[i - 3], NULL);
    printf("%u\n", taken);
    for (uint32_t i = 0; i < taken && i < KEPT; i++) printf("%u\n", waits[i]);
    return EXIT_SUCCESS;
}
