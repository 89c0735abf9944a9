/* Takes and gives memory of device 0 as standard input says, a line each, and answers each with a line of JSON:
 *
 *   take BYTES CLASS    {"result":0,"function":"","id":3}     result = CUresult, -1: the driver lacks the function
 *   give ID             {"result":0,"function":""}            function = the one that failed
 *   info                {"result":0,"function":"","free":BYTES,"total":BYTES,"whole":BYTES}
 *   classes             {"classes":["plain",...]}
 *
 * `free` and `total` are cuMemGetInfo's, `whole` is cuDeviceTotalMem's. Its first line says how it started. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"

enum { LINE_SIZE = 512, HOLDINGS = 8192 };

static const struct class *const files[] = {linear_classes, pool_classes,   vmm_classes,    array_classes,
                                            graph_classes,  module_classes, context_classes};
enum { FILES = sizeof files / sizeof *files };

static struct holding holdings[HOLDINGS];
static size_t count;

static void answer(const char *more) {
    printf("{\"result\":%d,\"function\":\"%s\"%s}\n", (int)failure.result, failure.function, more);
    (void)fflush(stdout);
    forget_failure();
}

static const struct class *find(const char *name) {
    for (size_t file = 0; file < FILES; file++)
        for (const struct class *class = files[file]; class->name; class++)
            if (strcmp(class->name, name) == 0) return class;
    return NULL;
}

static void take(size_t bytes, const char *name) {
    char more[64];
    const struct class *class = find(name);
    if (!class || count == HOLDINGS) exit(2);
    holdings[count] = (struct holding){.class = class, .bytes = bytes};
    class->take(&holdings[count]);
    (void)snprintf(more, sizeof more, ",\"id\":%zu", count);
    count += failure.result == CUDA_SUCCESS;
    answer(more);
}

static void give(size_t id) {
    if (id >= count) exit(2);
    holdings[id].class->give(&holdings[id]);
    answer("");
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

static void list(void) {
    const char *comma = "";
    printf("{\"classes\":[");
    for (size_t file = 0; file < FILES; file++)
        for (const struct class *class = files[file]; class->name; class++, comma = ",")
            printf("%s\"%s\"", comma, class->name);
    printf("]}\n");
    (void)fflush(stdout);
}

static void obey(char *line) {
    char *rest;
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "take ", 5) == 0) {
        size_t bytes = strtoull(line + 5, &rest, 10);
        take(bytes, rest + 1);
    } else if (strncmp(line, "give ", 5) == 0) {
        give(strtoull(line + 5, NULL, 10));
    } else if (strcmp(line, "classes") == 0) {
        list();
    } else {
        info();
    }
}

static bool start(void) {
    CUcontext context;
    return DO(cuInit, 0) && DO(cuDevicePrimaryCtxRetain, &context, 0) && DO(cuCtxSetCurrent, context);
}

int main(void) {
    char line[LINE_SIZE];
    if (!calls_open()) return 2;
    start();
    answer("");
    while (fgets(line, sizeof line, stdin)) obey(line);
    return 0;
}
