/* While work is being captured into a graph, questions that the driver takes for unsafe, as what a pool has reserved,
 * spoil the capture, be it another thread's (measured on an H200, driver 580: error 900, then 901). */
#ifndef VGPU_DRIVER_CAPTURE_H
#define VGPU_DRIVER_CAPTURE_H

#include <stdbool.h>

/* A capture begins; whether any has ever begun in this process. */
void capture_note(void);
bool capture_was_seen(void);

/* Around such a question: the thread's own mode, to be put back. */
int capture_allow(void);
void capture_restore(int mode);

#define CAPTURE_ALLOWS(call)        \
    do {                            \
        int mode = capture_allow(); \
        call;                       \
        capture_restore(mode);      \
    } while (0)

#endif
