#include "mps/control/server_process.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "nvidia-cuda-mps-server"

/* The program is beside this one. A server ends with its daemon (measured on an H200, driver 580). */
static void become_server(int out, pid_t daemon) {
    char path[PATH_MAX + sizeof NAME];
    char descriptor[16];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != daemon) return;
    (void)snprintf(slash + 1, sizeof NAME, "%s", NAME);
    (void)snprintf(descriptor, sizeof descriptor, "%d", out);
    int null = open("/dev/null", O_RDWR); /* who reads the daemon's output does not wait for the server's end */
    for (int standard = 0; null >= 0 && standard < 3; standard++) dup2(null, standard);
    execl(path, NAME, descriptor, (char *)NULL);
}

void server_process_start(struct server_process *server) {
    int ends[2];
    if (server->pid != 0 || pipe(ends) != 0) return;
    pid_t daemon = getpid();
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become_server(ends[1], daemon);
        _exit(1);
    }
    close(ends[1]);
    bool is_started = child > 0 && read(ends[0], &server->id, sizeof server->id) == (ssize_t)sizeof server->id;
    close(ends[0]);
    server->pid = child > 0 ? child : 0;
    if (!is_started) server_process_end(server);
}

void server_process_look(struct server_process *server) {
    if (server->pid != 0 && waitpid(server->pid, NULL, WNOHANG) == server->pid) server->pid = 0;
}

void server_process_end(struct server_process *server) {
    if (server->pid == 0) return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}
