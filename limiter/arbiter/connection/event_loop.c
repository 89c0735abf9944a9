#include "arbiter/connection/event_loop.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/system_calls.h"

enum { EVENTS_PER_WAIT = 64 };

static int epoll_fd = -1;
static uint64_t timer_armed_for; /* the time that the timer is set to, CLOCK_MONOTONIC in ns; 0 = not set */

static void on_timer(struct event_source *timer) {
    uint64_t expirations;
    if (read(timer->fd, &expirations, sizeof expirations) > 0) timer_armed_for = 0;
}

static struct event_source timer = {.ready = on_timer, .fd = -1};

bool event_loop_open(void) {
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return epoll_fd >= 0 && timer.fd >= 0 && event_loop_add(&timer);
}

static bool control(int operation, struct event_source *source, uint32_t events) {
    struct epoll_event event = {.events = events, .data = {.ptr = source}};
    return epoll_ctl(epoll_fd, operation, source->fd, &event) == 0;
}

bool event_loop_add(struct event_source *source) { return control(EPOLL_CTL_ADD, source, EPOLLIN); }

void event_loop_mute(struct event_source *source, bool is_muted) {
    control(EPOLL_CTL_MOD, source, is_muted ? 0 : EPOLLIN);
}

/* close() also removes the descriptor from epoll, because no other process has a copy of it. */
void event_loop_remove(struct event_source *source) {
    if (source->fd >= 0) close(source->fd);
    source->fd = -1;
}

/* A timerfd is exact, unlike epoll_wait's timeout in ms. The time 0 would disarm it. */
static void set_timer(uint64_t until) {
    if (until == 0) until = 1;
    if (until == timer_armed_for) return;
    struct itimerspec when = {.it_value = system_timespec(until)};
    timer_armed_for = timerfd_settime(timer.fd, TFD_TIMER_ABSTIME, &when, NULL) == 0 ? until : 0;
}

void event_loop_wait(uint64_t until) {
    struct epoll_event ready[EVENTS_PER_WAIT];
    set_timer(until);
    int count = epoll_wait(epoll_fd, ready, EVENTS_PER_WAIT, -1);
    for (int i = 0; i < count; i++) {
        struct event_source *source = ready[i].data.ptr;
        if (source->fd >= 0) source->ready(source);
    }
}
