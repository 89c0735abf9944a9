#include "driver/copies.h"

#include <stdbool.h>
#include <stddef.h>

#include "common/log.h"
#include "driver/function_table.h"
#include "loader/libc.h"
#include "loader/objects.h"
#include "loader/own_strings.h"

/* "libcuda.so.1" is the soname of each copy; some have lost it and have a file name that begins as the soname does. */
static bool is_copy_of(const struct loaded_object *object, enum library library) {
    static const char *const file_names[LIBRARIES] = {[CUDA] = "libcuda.so", [NVML] = "libnvidia-ml.so"};
    if (object->soname) return own_strings_are_equal(object->soname, functions_soname(library));
    return own_strings_begins_with(own_strings_file_name(object->path), file_names[library]);
}

static void tell_once(const struct loaded_object *copy, const void *function_of_first) {
    static bool is_told; /* atomic */
    struct loaded_object first;
    if (!function_of_first || !objects_find(function_of_first, &first)) return;
    if (__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED)) return;
    log_warn("%s is a second copy of the driver in this process: %s, which was loaded first, does its work", copy->path,
             first.path);
}

static void *redirect(const char *name, void *address, enum library library) {
    struct loaded_object object;
    if (!objects_find(address, &object) || !is_copy_of(&object, library)) return address;
    void *handle = functions_handle(library);
    void *first = handle ? LIBC(dlsym)(handle, name) : address;
    if (first != address) tell_once(&object, first);
    return first;
}

void *copies_redirect(const char *name, void *address) {
    if (address && functions_is_named_as(name, CUDA)) return redirect(name, address, CUDA);
    if (address && functions_is_named_as(name, NVML)) return redirect(name, address, NVML);
    return address;
}
