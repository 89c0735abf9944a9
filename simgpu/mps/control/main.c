/* nvidia-cuda-mps-control: with -f the daemon of a pipe directory; without, the commands of its standard input are
 * given to that daemon. Of the real program it has what vgpushare uses; every server serves clients of all users, which
 * the real one does with -multiuser-server. */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardware/clock.h"
#include "ledger/mps_servers.h"
#include "mps/control/commands.h"
#include "mps/pipe/pipe.h"

#define ANSWER_SIZE   8192
#define POLL_MS       20
#define ALL_MAY_WRITE 0666 /* mode of the daemon's files (measured on an H200, driver 580) */
#define LINE_S        1    /* how long the daemon waits for the line of a client that has connected */

/* Whether this is the only daemon of the directory; it is until the process ends. */
static bool lock_directory(void) {
    char path[PIPE_PATH_SIZE];
    int fd = pipe_path(path, "control_lock") ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, ALL_MAY_WRITE) : -1;
    return fd >= 0 && fchmod(fd, ALL_MAY_WRITE) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void write_pid(void) {
    char path[PIPE_PATH_SIZE];
    FILE *file = pipe_path(path, "nvidia-cuda-mps-control.pid") ? fopen(path, "we") : NULL;
    if (!file) return;
    (void)fchmod(fileno(file), ALL_MAY_WRITE);
    (void)fprintf(file, "%d\n", getpid());
    (void)fclose(file);
}

static uid_t peer_uid(int fd) {
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.uid : (uid_t)-1;
}

static void answer_one(struct daemon_state *daemon, int listener) {
    static const struct timeval timeout = {.tv_sec = LINE_S};
    char line[128] = {0};
    char answer[ANSWER_SIZE];
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (recv(fd, line, sizeof line - 1, 0) > 0) {
        command_run(daemon, peer_uid(fd), line, answer, sizeof answer);
        (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    }
    close(fd);
}

static bool is_over(struct daemon_state *daemon) {
    unsigned pids[MPS_CLIENTS];
    if (daemon->ends_at == 0) return false;
    bool is_used = daemon->server.pid != 0 && mps_server_clients(daemon->server.id, pids) > 0;
    return !is_used || clock_now_ns() >= daemon->ends_at;
}

static int run_daemon(void) {
    struct daemon_state daemon = {.percentage = 100};
    int listener = lock_directory() ? pipe_listen() : -1;
    if (listener < 0) {
        (void)fputs("An instance of this daemon is already running\n", stderr);
        return 1;
    }
    write_pid();
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    while (!is_over(&daemon)) {
        if (poll(&waiting, 1, POLL_MS) > 0) answer_one(&daemon, listener);
        server_process_look(&daemon.server);
    }
    server_process_end(&daemon.server);
    return 0;
}

static int run_commands(void) {
    char line[128];
    char answer[ANSWER_SIZE];
    while (fgets(line, sizeof line, stdin)) {
        if (!pipe_ask(line, answer, sizeof answer)) {
            (void)fputs("Cannot find MPS control daemon process\n", stderr);
            return 1;
        }
        (void)fputs(answer, stdout);
    }
    return 0;
}

int main(int count, char **arguments) {
    bool is_daemon = false;
    for (int i = 1; i < count; i++) {
        is_daemon = is_daemon || strcmp(arguments[i], "-f") == 0;
        if (strcmp(arguments[i], "-f") != 0 && strcmp(arguments[i], "-multiuser-server") != 0) {
            (void)fputs("usage: nvidia-cuda-mps-control [-f] [-multiuser-server]\n", stderr);
            return 2;
        }
    }
    return is_daemon ? run_daemon() : run_commands();
}
