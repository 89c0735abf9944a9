/* AddressSanitizer's shared runtime ends a program in which another library is loaded before the runtime, because that
 * library might define malloc(). This library is loaded before the runtime and defines no function that the runtime
 * replaces, so it tells the runtime not to check. The runtime asks the first definition of the function below, which is
 * the program's own where there is one. */
#include "driver/function_table.h"
#include "loader/elf.h"
#include "loader/own_strings.h"

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl*,misc-use-internal-linkage): the runtime calls it by this name */
EXPORT const char *__asan_default_options(void);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl*,misc-use-internal-linkage) */

/* The runtime does not count the program and the kernel's vDSO either. */
static const struct link_map *skip_uncounted(const struct link_map *object) {
    if (object) object = object->l_next;
    while (object && (!*object->l_name || own_strings_begins_with(object->l_name, "linux-"))) object = object->l_next;
    return object;
}

static bool is_runtime(const struct link_map *object) {
    const char *name = own_strings_file_name(object->l_name);
    return own_strings_begins_with(name, "libasan.so") || own_strings_begins_with(name, "libclang_rt.asan");
}

/* Another library before the runtime stays an error. */
static bool is_only_this_library_before_the_runtime(void) {
    const struct link_map *first = skip_uncounted(elf_loaded_objects());
    return first && first->l_ld == _DYNAMIC && first->l_next && is_runtime(first->l_next);
}

const char *__asan_default_options(void) {
    return is_only_this_library_before_the_runtime() ? "verify_asan_link_order=0" : "";
}
