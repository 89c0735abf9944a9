/* pool_growth.c with a pause between the look for room and the driver's call, in which other threads make the pool grow
 * (test_pool_races.py). */
#include <unistd.h>

#include "books/pools/exports.h"

#define PAUSE_US      200
#define exports_any() (usleep(PAUSE_US) == 0 && exports_any())

#include "hooks/pools/pool_growth.c"
