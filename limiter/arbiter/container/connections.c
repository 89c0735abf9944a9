#include "arbiter/container/connections.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "arbiter/connection/client_page.h"
#include "arbiter/connection/event_loop.h"
#include "arbiter/connection/handshake.h"
#include "arbiter/connection/rate_limit.h"
#include "arbiter/container/card_board.h"
#include "arbiter/container/jobs.h"
#include "arbiter/container/tenancy.h"
#include "arbiter/schedule/schedule.h"
#include "arbiter/schedule/schedule_run.h"
#include "arbiter/tenant/demand.h"
#include "common/arithmetic.h"
#include "common/clock.h"
#include "common/log.h"

/* Limit for one process; a turn takes two messages. container.c limits all processes of a container together. */
enum { MESSAGES_PER_SECOND = 2000 };

/* A container may have more connections than are accepted, so that the processes beyond receive ARBITRATION_TOO_MANY
 * instead of waiting in the socket's queue. */
enum {
    CONNECTION_TABLE_SIZE = SCHEDULE_CLIENTS,
    ACCEPTED_PER_CONTAINER = 256,
    CONNECTIONS_PER_CONTAINER = ACCEPTED_PER_CONTAINER + 32
};

/* A limiter sends its hello directly after connecting. Checked every half second, so that a connection without a hello
 * lives for a second at most. */
#define HELLO_TIMEOUT (NS_PER_SECOND / 2)

/* How late a message may be received. */
#define LATE_MAX (50 * NS_PER_MS)

struct connection {
    struct event_source source;  /* first, so that a pointer to it is one to the connection */
    struct container *container; /* NULL: the entry is free */
    struct card_board *board;    /* NULL: no hello was accepted yet */
    bool is_member;              /* its client is one of its container's group in space */
    int client;
    uint64_t accepted_at;
    struct rate_limit rate;
};

static struct connection connections[CONNECTION_TABLE_SIZE];
static int first_free_hint; /* all entries before it are taken */

static struct connection *free_connection(void) {
    while (first_free_hint < CONNECTION_TABLE_SIZE && connections[first_free_hint].container) first_free_hint++;
    return first_free_hint < CONNECTION_TABLE_SIZE ? &connections[first_free_hint] : NULL;
}

static void close_connection(struct connection *connection, uint64_t now) {
    if (connection->board) {
        card_board_leave(connection->board, connection->client, now);
        connection->container->accepted_clients--;
    }
    event_loop_remove(&connection->source);
    connection->container->connections--;
    connection->container = NULL;
    if (connection - connections < first_free_hint) first_free_hint = (int)(connection - connections);
}

/* Whether `connection` is a better choice than `other` (NULL: any is) to be closed for another container: that of the
 * container with the most connections; of these one without a hello, then the newest. */
static bool is_more_dispensable(const struct connection *connection, const struct connection *other) {
    if (!other) return true;
    if (connection->container->connections != other->container->connections)
        return connection->container->connections > other->container->connections;
    if (!connection->board != !other->board) return !connection->board;
    return connection->accepted_at > other->accepted_at;
}

/* Closes a connection of the container with the most connections, unless that has hardly more than this container. So
 * no container can keep another from having as many connections as it has itself. False if none was closed. */
static bool make_room_for(const struct container *container, uint64_t now) {
    struct connection *chosen = NULL;
    for (int i = 0; i < CONNECTION_TABLE_SIZE; i++)
        if (connections[i].container && is_more_dispensable(&connections[i], chosen)) chosen = &connections[i];
    if (!chosen || chosen->container->connections <= container->connections + 1) return false;
    log_debug("a connection of container %s was closed, because the arbiter has no room", chosen->container->name);
    close_connection(chosen, now);
    return true;
}

static enum arbitration_result join_card(struct connection *connection, const struct arbitration_hello *hello,
                                         struct arbitration_page *page, uint64_t now) {
    struct demand demand;
    struct container *container = connection->container;
    connection->is_member = (hello->abilities & ARBITRATION_IN_SPACE) && limits_is_in_space(&container->limits);
    if (!demand_of(&container->limits, hello->uuid, &demand)) return ARBITRATION_NO_SUCH_CARD;
    struct card_board *board = container->accepted_clients < ACCEPTED_PER_CONTAINER ? card_board_of(hello->uuid) : NULL;
    if (!board) return ARBITRATION_TOO_MANY;
    struct tenancy *tenancy = tenancy_of(container, board, connection->is_member, now);
    bool joins = (hello->abilities & ARBITRATION_JOINS) != 0;
    connection->client = tenancy ? card_board_join(board, tenancy->tenant, page, joins, now) : SCHEDULE_NONE;
    card_board_close_unused(board);
    if (connection->client == SCHEDULE_NONE) return ARBITRATION_TOO_MANY;
    connection->board = board;
    container->accepted_clients++;
    if (limits_is_of_job(&container->limits)) jobs_refresh(container); /* before its first launch */
    return ARBITRATION_ACCEPTED;
}

/* Creating a page takes two descriptors for a moment. */
static struct arbitration_page *create_page_for(const struct container *container, int *fd, uint64_t now) {
    struct arbitration_page *page = client_page_create(fd);
    for (int freed = 0; !page && freed < 2 && make_room_for(container, now); freed++) page = client_page_create(fd);
    return page;
}

/* The page is complete before the client can map it. False: the connection is to be closed. */
static bool accept_hello(struct connection *connection, const struct arbitration_hello *hello, uint64_t now) {
    int fd = -1;
    struct arbitration_page *page = create_page_for(connection->container, &fd, now);
    if (!page) return handshake_send(connection->source.fd, ARBITRATION_TOO_MANY, -1) && false;
    container_open_region(connection->container);
    container_read_limits(connection->container);
    enum arbitration_result result = join_card(connection, hello, page, now);
    bool is_sent = handshake_send(connection->source.fd, result, result == ARBITRATION_ACCEPTED ? fd : -1);
    if (result != ARBITRATION_ACCEPTED) client_page_close(page);
    handshake_close_page_fd(fd);
    return is_sent && result == ARBITRATION_ACCEPTED;
}

static bool handle_hello(struct connection *connection, const void *bytes, size_t size, uint64_t now) {
    const struct arbitration_hello *hello = bytes;
    if (!handshake_is_hello(hello, size)) return false;
    if (hello->version == ARBITRATION_VERSION) return accept_hello(connection, hello, now);
    handshake_send(connection->source.fd, ARBITRATION_OTHER_VERSION, -1);
    return false;
}

/* When the work of the turn drains, after `now`. The message says how long that takes from when it was sent; on a busy
 * machine it is received some ms later. The region says when it is. */
static uint64_t rest_of_turn(const struct connection *connection, uint64_t announced, uint64_t now) {
    struct card_board *board = connection->board;
    struct tenancy *tenancy = tenancy_of(connection->container, board, connection->is_member, now);
    if (!tenancy) return announced;
    uint64_t busy_until = container_use(connection->container, board->uuid, &tenancy->region_row).busy_until;
    schedule_run_note_busy_until(board->schedule, tenancy->tenant, card_board_use(board, tenancy->tenant).busy_until);
    uint64_t drains_at = saturating_sub(busy_until, ARBITRATION_BUSY_GRACE_NS);
    if (saturating_add(drains_at, LATE_MAX) < now) return announced;
    return min_u64(announced, drains_at - min_u64(drains_at, now));
}

static bool handle_message(struct connection *connection, const void *bytes, size_t size, uint64_t now) {
    const struct arbitration_message *message = bytes;
    struct schedule *schedule = connection->board->schedule;
    bool is_allowed = rate_limit_allows(&connection->rate, now) && rate_limit_allows(&connection->container->rate, now);
    if (size != sizeof *message || !is_allowed) return false;
    if (message->kind == ARBITRATION_WANT)
        schedule_want(schedule, connection->client, message->ns, message->step_us * NS_PER_US, now);
    else if (message->kind == ARBITRATION_DONE || message->kind == ARBITRATION_DONE_AWAITED)
        schedule_done(schedule, connection->client, message->turn, rest_of_turn(connection, message->ns, now),
                      message->kind == ARBITRATION_DONE_AWAITED, now);
    else
        return false;
    card_board_touch(connection->board);
    return true;
}

/* Whether the connection stays open. A message of another size or kind closes it, because no limiter sends one. */
static bool receive(struct connection *connection, uint64_t now) {
    union {
        struct arbitration_hello hello;
        struct arbitration_message message;
        char bytes[64];
    } received;
    ssize_t size = recv(connection->source.fd, &received, sizeof received, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) return false;
    return connection->board ? handle_message(connection, &received, (size_t)size, now)
                             : handle_hello(connection, &received, (size_t)size, now);
}

static void on_readable(struct event_source *source) {
    struct connection *connection = (struct connection *)source;
    uint64_t now = clock_now();
    if (!receive(connection, now)) close_connection(connection, now);
}

static void add_connection(struct container *container, struct connection *connection, int fd) {
    *connection = (struct connection){.source = {.ready = on_readable, .fd = fd},
                                      .container = container,
                                      .client = SCHEDULE_NONE,
                                      .accepted_at = clock_now(),
                                      .rate = rate_limit_new(MESSAGES_PER_SECOND, clock_now())};
    container->connections++;
    if (!event_loop_add(&connection->source)) close_connection(connection, clock_now());
}

/* A free entry for a new connection of the container; NULL if it has too many already, or there is no room. */
static struct connection *entry_for(struct container *container) {
    if (container->connections >= CONNECTIONS_PER_CONTAINER) return NULL;
    struct connection *entry = free_connection();
    if (entry || !make_room_for(container, clock_now())) return entry;
    return free_connection();
}

/* Accepts a connection; if no descriptor is free, in place of another container's. */
static int accept_at(struct container *container) {
    int fd = accept4(container->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 || (errno != EMFILE && errno != ENFILE)) return fd;
    if (make_room_for(container, clock_now()))
        fd = accept4(container->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    else
        container->accepts_left = 0;
    return fd;
}

void connections_accept(struct event_source *listener) {
    struct container *container = (struct container *)listener;
    if (container->accepts_left-- <= 0) {
        event_loop_mute(listener, true);
        return;
    }
    int fd = accept_at(container);
    if (fd < 0) return;
    struct connection *connection = entry_for(container);
    if (connection)
        add_connection(container, connection, fd);
    else
        handshake_refuse(fd);
}

void connections_close(struct container *container) {
    for (int i = 0; i < CONNECTION_TABLE_SIZE; i++)
        if (connections[i].container == container) close_connection(&connections[i], clock_now());
}

void connections_close_silent(uint64_t now) {
    for (int i = 0; i < CONNECTION_TABLE_SIZE; i++) {
        struct connection *connection = &connections[i];
        bool is_silent = connection->container && !connection->board;
        if (is_silent && now >= connection->accepted_at + HELLO_TIMEOUT) close_connection(connection, now);
    }
}
