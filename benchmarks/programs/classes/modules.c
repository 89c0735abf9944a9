/* Variables of modules and libraries. */
#include <stdio.h>

#include "classes.h"

#define HEADER ".version 7.0\n.target sm_70\n.address_size 64\n"

enum { TEXT_SIZE = 256 };

static bool load(struct holding *held, const char *text) {
    return DO(cuModuleLoadData, (CUmodule *)&held->object, text);
}

static void unload(struct holding *held) { DO(cuModuleUnload, held->object); }

static void write(char text[TEXT_SIZE], size_t bytes) {
    (void)snprintf(text, TEXT_SIZE, HEADER ".visible .global .align 16 .b8 big[%zu];\n", bytes);
}

/* Reading the address makes the driver load a module whose loading it deferred. */
static bool take_variable(struct holding *held) {
    char text[TEXT_SIZE];
    size_t size;
    write(text, held->bytes);
    if (!load(held, text)) return false;
    if (DO(cuModuleGetGlobal_v2, &held->pointer, &size, held->object, "big")) return true;
    unload(held);
    return false;
}

static void unload_library(struct holding *held) { DO(cuLibraryUnload, held->object); }

static bool take_of_library(struct holding *held) {
    char text[TEXT_SIZE];
    size_t size;
    write(text, held->bytes);
    if (!DO(cuLibraryLoadData, (CUlibrary *)&held->object, text, NULL, NULL, 0, NULL, NULL, 0)) return false;
    if (DO(cuLibraryGetGlobal, &held->pointer, &size, held->object, "big")) return true;
    unload_library(held);
    return false;
}

const struct class module_classes[] = {
    {"module variable", take_variable, unload},
    {"library variable", take_of_library, unload_library},
    {0},
};
