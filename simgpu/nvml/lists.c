#include "nvml/lists.h"

#include <stdlib.h>
#include <string.h>

void *nvml_list(size_t count, size_t size) { return calloc(count, size); }

void nvml_list_free(void *variable) {
    void *list;
    memcpy((void *)&list, variable, sizeof list);
    free(list);
}
