#include "classes.h"

#include <string.h>

static const struct class *const files[] = {linear_classes,   pool_classes,   vmm_classes,     array_classes,
                                            graph_classes,    module_classes, context_classes, sharing_classes,
                                            external_classes, green_classes};
enum { FILES = sizeof files / sizeof *files };

const struct class *find_class(const char *name) {
    for (size_t file = 0; file < FILES; file++)
        for (const struct class *class = files[file]; class->name; class++)
            if (strcmp(class->name, name) == 0) return class;
    return NULL;
}

void each_class(void (*call)(const struct class *)) {
    for (size_t file = 0; file < FILES; file++)
        for (const struct class *class = files[file]; class->name; class++) call(class);
}
