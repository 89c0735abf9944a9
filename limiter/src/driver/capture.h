/* Stream capture. While any thread of the process captures work into a graph, the driver treats some queries as unsafe,
 * such as how much a pool has reserved: the query fails and invalidates the capture, even another thread's (measured on
 * an H200, driver 580: error 900, then 901). In relaxed capture mode the query is allowed. */
#ifndef VGPU_DRIVER_CAPTURE_H
#define VGPU_DRIVER_CAPTURE_H

#include <stdbool.h>

/* Records that a capture begins. */
void capture_note(void);

/* Whether a capture has ever begun in this process; before that, no query needs CAPTURE_ALLOWS. */
bool capture_was_seen(void);

/* Sets the calling thread's capture mode to relaxed and returns the former mode. */
int capture_allow(void);

/* Sets the calling thread's capture mode to what capture_allow returned. */
void capture_restore(int mode);

/* Makes a driver call, which must not return or jump, in relaxed capture mode. */
#define CAPTURE_ALLOWS(call)        \
    do {                            \
        int mode = capture_allow(); \
        call;                       \
        capture_restore(mode);      \
    } while (0)

#endif
