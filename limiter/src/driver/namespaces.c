#include "driver/namespaces.h"

#include <stdbool.h>
#include <stddef.h>

enum { NAMESPACES = 16 };                      /* as many as glibc has */
static namespaces_function copies[NAMESPACES]; /* atomic */

void *namespaces_substitute(const char *name, void *address) {
    for (int i = 0; i < NAMESPACES; i++) {
        namespaces_function substitute = __atomic_load_n(&copies[i], __ATOMIC_ACQUIRE);
        void *found = substitute && address ? substitute(name, address) : address;
        if (found != address) return found;
    }
    return address;
}

void namespaces_add(namespaces_function substitute) {
    for (int i = 0; substitute && i < NAMESPACES; i++) {
        namespaces_function empty = NULL;
        if (__atomic_compare_exchange_n(&copies[i], &empty, substitute, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
            empty == substitute)
            return;
    }
}
