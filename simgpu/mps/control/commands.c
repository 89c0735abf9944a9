#include "mps/control/commands.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hardware/clock.h"
#include "ledger/mps_servers.h"
#include "mps/pipe/pipe.h"

/* An answer that is being written. */
struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->at, text->left, format, arguments);
    va_end(arguments);
    size_t used = length > 0 && (size_t)length < text->left ? (size_t)length : 0;
    text->at += used;
    text->left -= used;
}

static bool is_server(const struct daemon_state *daemon, const char *argument) {
    return argument && daemon->server.pid != 0 && strtol(argument, NULL, 10) == daemon->server.pid;
}

static void serve(struct daemon_state *daemon, const char *own, struct text *out) {
    unsigned percentage = own ? (unsigned)strtoul(own, NULL, 10) : 0;
    if (percentage == 0 || percentage > daemon->percentage) percentage = daemon->percentage;
    if (daemon->ends_at == 0) server_process_start(&daemon->server);
    if (daemon->ends_at != 0 || daemon->server.pid == 0)
        add(out, PIPE_CLOSING);
    else
        add(out, PIPE_SERVER "%lu %u %lu\n", daemon->server.id, percentage, daemon->bytes);
}

static void start_server(struct daemon_state *daemon, struct text *out) {
    server_process_start(&daemon->server);
    if (daemon->server.pid == 0) add(out, "Cannot start a server\n");
}

static void list_servers(const struct daemon_state *daemon, struct text *out) {
    if (daemon->server.pid != 0) add(out, "%d\n", daemon->server.pid);
}

static void list_clients(const struct daemon_state *daemon, const char *server, struct text *out) {
    unsigned pids[MPS_CLIENTS];
    unsigned count = is_server(daemon, server) ? mps_server_clients(daemon->server.id, pids) : 0;
    for (unsigned i = 0; i < count; i++) add(out, "%u\n", pids[i]);
}

static void say_status(const struct daemon_state *daemon, const char *server, struct text *out) {
    if (!is_server(daemon, server))
        add(out, "No server\n");
    else
        add(out, mps_server_is_faulted(daemon->server.id) ? "FAULT\n" : "ACTIVE\n");
}

/* The columns ID, DEVICE and NAMESPACE are not simulated. */
static void list_processes(const struct daemon_state *daemon, struct text *out) {
    unsigned pids[MPS_CLIENTS];
    unsigned count = daemon->server.pid != 0 ? mps_server_clients(daemon->server.id, pids) : 0;
    add(out, "PID       ID    SERVER    DEVICE             NAMESPACE      COMMAND\n");
    for (unsigned i = 0; i < count; i++)
        add(out, "%-10u%-6u%-10d%-19s%-15s%s\n", pids[i], i, daemon->server.pid, "-", "-", "-");
}

static void set_percentage(struct daemon_state *daemon, const char *value, struct text *out) {
    double percentage = value ? strtod(value, NULL) : 0;
    if (percentage > 0 && percentage <= 100)
        daemon->percentage = (unsigned)(percentage + 0.999);
    else
        add(out, "Invalid percentage\n");
}

static uint64_t bytes_of(const char *value) {
    char *end;
    uint64_t bytes = strtoull(value, &end, 10);
    if (*end == 'G') return bytes << 30;
    return *end == 'M' ? bytes << 20 : bytes;
}

/* Of every card: a daemon of ours has one. */
static void set_memory(struct daemon_state *daemon, const char *value, struct text *out) {
    if (value)
        daemon->bytes = bytes_of(value);
    else
        add(out, "Invalid limit\n");
}

static void quit(struct daemon_state *daemon, const char *option, const char *seconds) {
    bool is_bounded = option && strcmp(option, "-t") == 0 && seconds;
    daemon->ends_at = is_bounded ? clock_now_ns() + strtoull(seconds, NULL, 10) * 1000000000 : UINT64_MAX;
}

/* Only the daemon's user and root change anything. That this is so of a setting was measured, of the others not. */
static bool is_refused(const char *name, uid_t user) {
    static const char *const changing[] = {"start_server", "set_default_active_thread_percentage",
                                           "set_default_device_pinned_mem_limit", "quit"};
    bool is_changing = false;
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
        is_changing = is_changing || strcmp(name, changing[i]) == 0;
    return is_changing && user != 0 && user != geteuid();
}

void command_run(struct daemon_state *daemon, uid_t user, const char *line, char *answer, size_t size) {
    char words[128];
    char *rest;
    (void)snprintf(words, sizeof words, "%s", line);
    const char *name = strtok_r(words, " \n", &rest);
    const char *first = strtok_r(NULL, " \n", &rest);
    const char *second = strtok_r(NULL, " \n", &rest);
    struct text out = {.at = answer, .left = size};
    *answer = '\0';
    if (!name) return;
    server_process_look(&daemon->server);
    if (is_refused(name, user))
        add(&out, "Insufficient privileges for UID %u\n", user);
    else if (strcmp(name, "client") == 0)
        serve(daemon, first, &out);
    else if (strcmp(name, "start_server") == 0)
        start_server(daemon, &out);
    else if (strcmp(name, "get_server_list") == 0)
        list_servers(daemon, &out);
    else if (strcmp(name, "get_client_list") == 0)
        list_clients(daemon, first, &out);
    else if (strcmp(name, "get_server_status") == 0)
        say_status(daemon, first, &out);
    else if (strcmp(name, "ps") == 0)
        list_processes(daemon, &out);
    else if (strcmp(name, "get_default_active_thread_percentage") == 0)
        add(&out, "%u.0\n", daemon->percentage);
    else if (strcmp(name, "set_default_active_thread_percentage") == 0)
        set_percentage(daemon, first, &out);
    else if (strcmp(name, "set_default_device_pinned_mem_limit") == 0)
        set_memory(daemon, second, &out);
    else if (strcmp(name, "quit") == 0)
        quit(daemon, first, second);
    else
        add(&out, "Unknown command: %s\n", name);
}
