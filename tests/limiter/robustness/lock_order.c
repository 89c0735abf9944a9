/* Takes two locks in the order that its arguments give, by their numbers in lock.h. */
#include <stdlib.h>

#include "process/lock.h"

int main(int count, char **arguments) {
    if (count != 3) return 2;
    lock_take((enum lock)strtol(arguments[1], NULL, 10));
    lock_take((enum lock)strtol(arguments[2], NULL, 10));
    return 0;
}
