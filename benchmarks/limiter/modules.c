/* Memory that code brings along: the variables of a module. */
#include <stdio.h>

#include "classes.h"

#define HEADER ".version 7.0\n.target sm_70\n.address_size 64\n"

enum { TEXT_SIZE = 256 };

static bool load(struct holding *held, const char *text) {
    return DO(cuModuleLoadData, (CUmodule *)&held->object, text);
}

static void unload(struct holding *held) { DO(cuModuleUnload, held->object); }

/* Asking for the address loads what lazy loading has put off. */
static bool take_variable(struct holding *held) {
    char text[TEXT_SIZE];
    size_t size;
    (void)snprintf(text, sizeof text, HEADER ".visible .global .align 16 .b8 big[%zu];\n", held->bytes);
    if (!load(held, text)) return false;
    if (DO(cuModuleGetGlobal_v2, &held->pointer, &size, held->object, "big")) return true;
    unload(held);
    return false;
}

const struct class module_classes[] = {{"module variable", take_variable, unload}, {0}};
