#include "nvml/text.h"

#include <stdio.h>
#include <string.h>

nvmlReturn_t nvml_copy_text(char *out, unsigned length, const char *text) {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    (void)snprintf(out, length, "%s", text);
    return NVML_SUCCESS;
}
