/* Every function that NVIDIA's headers declare, of CUDA and NVML in versions 12 and 13: one line for each, with what
 * the library does about it (the macro) and why (the class). `python -m limiter.build check` compares the list with the
 * headers. The function table, the exported symbols and the tests' expectations are generated from the list; prototypes
 * come from the headers, so that a wrapper with a wrong signature does not compile.
 *
 * To use the list, define those of the four macros that you need, then include this file; it undefines all four.
 *
 *   HOOKED   wrapped: programs get the library's wrapper
 *   CALLED   not wrapped; the library itself calls the function
 *   UNWRAPPED  not wrapped, although it should be; change it to HOOKED together with the wrapper
 *   PASSED   not wrapped, and needs no wrapper
 *
 * Classes. A function of the first five is never PASSED:
 *
 *   ALLOCATES, FREES  memory of the card, which is charged and released
 *   QUERIES           reports memory sizes or processes: the wrapper shows the limit and the container's processes
 *   LAUNCHES          starts work on the card
 *   RESOLVES          looks up driver functions: the wrapper returns wrappers
 *   HOST              memory of the host, which is not charged
 *   ADDRESSES         address ranges and access rights; takes no memory
 *   SHARES            passes on memory that is charged where it was allocated, or that belongs to a graphics API
 *   COPIES            copies, fills, moves or discards memory that is allocated already
 *   ORDERS            synchronisation: streams, events, semaphores
 *   BUILDS            describes work; nothing runs, and no memory is taken, before it is launched
 *   READS             reports state
 *   SETS              changes how later calls behave
 *   PRIVATE           undocumented interface between NVIDIA's libraries, so its effect is unknown */
#ifndef HOOKED
#define HOOKED(name, class)
#endif
#ifndef CALLED
#define CALLED(name, class)
#endif
#ifndef UNWRAPPED
#define UNWRAPPED(name, class)
#endif
#ifndef PASSED
#define PASSED(name, class)
#endif

#define LIBRARY CUDA
#include "driver/functions/contexts.h"
#include "driver/functions/copies.h"
#include "driver/functions/graphics.h"
#include "driver/functions/graphs.h"
#include "driver/functions/memory.h"
#include "driver/functions/programs.h"
#include "driver/functions/streams.h"
#include "driver/functions/tools.h"
#undef LIBRARY

#define LIBRARY NVML
#include "driver/functions/nvml.h"
#include "driver/functions/nvml_device.h"
#include "driver/functions/nvml_vgpu.h"
#undef LIBRARY

#undef HOOKED
#undef CALLED
#undef UNWRAPPED
#undef PASSED
