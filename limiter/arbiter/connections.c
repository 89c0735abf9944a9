#include "connections.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "card_board.h"
#include "client_page.h"
#include "common/clock.h"
#include "common/log.h"
#include "demand.h"
#include "event_loop.h"
#include "handshake.h"
#include "rate_limit.h"
#include "schedule.h"

/* Of one process; see also container.c. */
enum { MESSAGES_A_SECOND = 2000 };

/* Beyond those of a container that are served there is room for some that are to be told so. */
enum { CONNECTIONS = SCHEDULE_CLIENTS, JOINED_MOST = 256, CONNECTIONS_MOST = JOINED_MOST + 32 };

struct connection {
    struct event_source source;  /* first: what is ready is the connection */
    struct container *container; /* NULL: the place is free */
    struct card_board *board;    /* NULL: it has not said hello */
    int client;
    struct rate_limit rate;
};

static struct connection connections[CONNECTIONS];
static int free_from; /* all before it are taken */

static struct connection *free_place(void) {
    while (free_from < CONNECTIONS && connections[free_from].container) free_from++;
    return free_from < CONNECTIONS ? &connections[free_from] : NULL;
}

static void end(struct connection *connection, uint64_t now) {
    if (connection->board) {
        card_board_leave(connection->board, connection->client, now);
        connection->container->joined--;
    }
    event_loop_remove(&connection->source);
    connection->container->connections--;
    connection->container = NULL;
    if (connection - connections < free_from) free_from = (int)(connection - connections);
}

static enum arbitration_result seat(struct connection *connection, const uint8_t uuid[UUID_SIZE],
                                    struct arbitration_page *page, uint64_t now) {
    struct demand demand;
    struct container *container = connection->container;
    if (!demand_of(&container->limits, uuid, &demand)) return ARBITRATION_NO_SUCH_CARD;
    struct card_board *board = container->joined < JOINED_MOST ? card_board_of(uuid) : NULL;
    if (!board) return ARBITRATION_TOO_MANY;
    struct seat *taken = container_seat(container, board, now);
    connection->client = taken ? card_board_join(board, taken->tenant, page, now) : SCHEDULE_NONE;
    card_board_close_unused(board);
    if (connection->client == SCHEDULE_NONE) return ARBITRATION_TOO_MANY;
    connection->board = board;
    container->joined++;
    return ARBITRATION_ACCEPTED;
}

/* The page is ready before its client can see it. */
static bool admit(struct connection *connection, const struct arbitration_hello *hello, uint64_t now) {
    int fd = -1;
    struct arbitration_page *page = client_page_make(&fd);
    if (!page) return handshake_send(connection->source.fd, ARBITRATION_TOO_MANY, -1) && false;
    container_open_region(connection->container);
    container_read_limits(connection->container);
    enum arbitration_result result = seat(connection, hello->uuid, page, now);
    bool is_sent = handshake_send(connection->source.fd, result, result == ARBITRATION_ACCEPTED ? fd : -1);
    if (result != ARBITRATION_ACCEPTED) client_page_close(page);
    handshake_close(fd);
    return is_sent && result == ARBITRATION_ACCEPTED;
}

static bool greet(struct connection *connection, const void *bytes, size_t size, uint64_t now) {
    const struct arbitration_hello *hello = bytes;
    if (!handshake_is_hello(hello, size)) return false;
    if (hello->version == ARBITRATION_VERSION) return admit(connection, hello, now);
    handshake_send(connection->source.fd, ARBITRATION_OTHER_VERSION, -1);
    return false;
}

static bool obey(struct connection *connection, const void *bytes, size_t size, uint64_t now) {
    const struct arbitration_message *message = bytes;
    struct schedule *schedule = connection->board->schedule;
    bool is_allowed = rate_limit_allows(&connection->rate, now) && rate_limit_allows(&connection->container->rate, now);
    if (size != sizeof *message || !is_allowed) return false;
    if (message->kind == ARBITRATION_WANT)
        schedule_want(schedule, connection->client, now);
    else if (message->kind == ARBITRATION_DONE)
        schedule_done(schedule, connection->client, message->turn, message->ns, now);
    else
        return false;
    card_board_touch(connection->board);
    return true;
}

/* Whether it may stay. A message of a wrong size, or that we do not know, ends it: such a client is none of ours. */
static bool hear(struct connection *connection, uint64_t now) {
    union {
        struct arbitration_hello hello;
        struct arbitration_message message;
        char bytes[64];
    } heard;
    ssize_t size = recv(connection->source.fd, &heard, sizeof heard, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) return false;
    return connection->board ? obey(connection, &heard, (size_t)size, now)
                             : greet(connection, &heard, (size_t)size, now);
}

static void hear_all(struct event_source *source) {
    struct connection *connection = (struct connection *)source;
    uint64_t now = clock_now();
    if (!hear(connection, now)) end(connection, now);
}

static void let_in(struct container *container, struct connection *place, int fd) {
    *place = (struct connection){.source = {.ready = hear_all, .fd = fd},
                                 .container = container,
                                 .client = SCHEDULE_NONE,
                                 .rate = rate_limit_new(MESSAGES_A_SECOND, clock_now())};
    container->connections++;
    if (!event_loop_add(&place->source)) end(place, clock_now());
}

void connections_accept(struct event_source *door) {
    struct container *container = (struct container *)door;
    if (container->admissions-- <= 0) {
        event_loop_mute(door, true);
        return;
    }
    int fd = accept4(door->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) container->admissions = 0;
    if (fd < 0) return;
    struct connection *place = container->connections < CONNECTIONS_MOST ? free_place() : NULL;
    if (place)
        let_in(container, place, fd);
    else
        handshake_refuse(fd);
}

void connections_close(struct container *container) {
    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].container == container) end(&connections[i], clock_now());
}
