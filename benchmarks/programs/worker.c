/* Allocates and frees memory of device 0 by commands from standard input, and answers each with a line of JSON:
 *
 *   take BYTES CLASS           {"result":0,"function":"","id":3,"ns":NS}
 *   give ID                    {"result":0,"function":""}
 *   export ID HOW              {"result":0,"function":"","token":"..."}      HOW: ipc, fd or pool, see sharing.h
 *   import BYTES HOW TOKEN     as take
 *   info                       {"result":0,"function":"","free":BYTES,"total":BYTES,"whole":BYTES}
 *   classes                    {"classes":["plain",...]}
 *   exec PROGRAM ARGUMENT      replaces this program
 *
 * result = CUresult, -1 when the driver lacks the function; function = the one that failed; ns = duration. `free` and
 * `total` are by cuMemGetInfo, `whole` by cuDeviceTotalMem. The first line printed is the result of the start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "classes/classes.h"
#include "classes/sharing.h"
#include "processes.h"

enum { LINE_SIZE = 1024, HOLDINGS = 8192 };

static struct holding holdings[HOLDINGS];
static size_t count;

static void answer(const char *more) {
    say("{\"result\":%d,\"function\":\"%s\"%s}", (int)failure.result, failure.function, more);
    forget_failure();
}

static void take(size_t bytes, const struct class *class) {
    char more[96];
    if (!class || count == HOLDINGS) exit(2);
    holdings[count] = (struct holding){.class = class, .bytes = bytes};
    uint64_t begun = now_ns();
    class->take(&holdings[count]);
    uint64_t taken = now_ns() - begun;
    (void)snprintf(more, sizeof more, ",\"id\":%zu,\"ns\":%llu", count, (unsigned long long)taken);
    count += failure.result == CUDA_SUCCESS;
    answer(more);
}

static void give(size_t id) {
    if (id >= count) exit(2);
    holdings[id].class->give(&holdings[id]);
    answer("");
}

static void hand_out(size_t id, const char *how) {
    char more[TOKEN_SIZE + 16];
    char token[TOKEN_SIZE] = "";
    if (id >= count) exit(2);
    share_out(how, &holdings[id], token);
    (void)snprintf(more, sizeof more, ",\"token\":\"%s\"", token);
    answer(more);
}

static void take_in(size_t bytes, const char *rest) {
    char how[8];
    int read = 0;
    if (sscanf(rest, "%7s %n", how, &read) != 1) exit(2);
    take(bytes, share_in(how, rest + read));
}

static void info(void) {
    char more[128];
    size_t available = 0;
    size_t total = 0;
    size_t whole = 0;
    (void)(DO(cuMemGetInfo_v2, &available, &total) && DO(cuDeviceTotalMem_v2, &whole, 0));
    (void)snprintf(more, sizeof more, ",\"free\":%zu,\"total\":%zu,\"whole\":%zu", available, total, whole);
    answer(more);
}

static void print_name(const struct class *class) {
    printf("%s\"%s\"", strcmp(class->name, linear_classes->name) == 0 ? "" : ",", class->name);
}

static void list(void) {
    printf("{\"classes\":[");
    each_class(print_name);
    say("]}");
}

static void exec_program(char *program) {
    char *argument = strchr(program, ' ');
    if (!argument) exit(2);
    *argument++ = 0;
    execl(program, program, argument, (char *)NULL);
    exit(2);
}

static void obey(char *line) {
    char verb[8] = "";
    size_t number = 0;
    int read = 0;
    line[strcspn(line, "\n")] = 0;
    (void)sscanf(line, "%7s %zu %n", verb, &number, &read);
    char *rest = line + read;
    if (strcmp(verb, "take") == 0)
        take(number, find_class(rest));
    else if (strcmp(verb, "give") == 0)
        give(number);
    else if (strcmp(verb, "export") == 0)
        hand_out(number, rest);
    else if (strcmp(verb, "import") == 0)
        take_in(number, rest);
    else if (strcmp(verb, "exec") == 0)
        exec_program(line + sizeof "exec");
    else if (strcmp(verb, "classes") == 0)
        list();
    else
        info();
}

int main(void) {
    char line[LINE_SIZE];
    start_cuda();
    answer("");
    while (fgets(line, sizeof line, stdin)) obey(line);
    return 0;
}
