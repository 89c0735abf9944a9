/* Every function that NVIDIA's headers declare, of CUDA and NVML in versions 12 and 13, once: what we do about it and
 * why. `python -m limiter.build check` holds the list against the headers. The table, the exports, the substitution and
 * the tests' expectations come from here; the prototypes from the headers, so a wrong signature does not compile.
 * Define those of the four words that you want, then include this; it undefines them.
 *
 *   HOOKED   ours stands in for it
 *   CALLED   called by us, never answered by us
 *   NOT_YET  goes past us, and should not: who writes its wrapper says HOOKED here
 *   PASSED   goes past us, as it should
 *
 * The class says why. Of the first five none is PASSED:
 *
 *   ALLOCATES, FREES  memory of the card: charged and taken back
 *   QUERIES           says how much memory there is, or who uses it: answers with the limit, and with our processes
 *   LAUNCHES          starts work on the card
 *   RESOLVES          hands out driver functions: answers with our wrappers
 *   HOST              memory of the host: not charged
 *   ADDRESSES         addresses, and who may use them: no memory
 *   SHARES            hands on memory that is charged where it was made, or is a graphics API's
 *   COPIES            moves, fills or drops memory that is held already
 *   ORDERS            what waits for what: streams, events, semaphores
 *   BUILDS            describes work: nothing runs, and nothing is taken, until it is launched
 *   READS             says what is
 *   SETS              changes how later calls behave
 *   PRIVATE           what NVIDIA's libraries share among themselves: undocumented, so not judged
 */
#ifndef HOOKED
#define HOOKED(name, class)
#endif
#ifndef CALLED
#define CALLED(name, class)
#endif
#ifndef NOT_YET
#define NOT_YET(name, class)
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
#undef NOT_YET
#undef PASSED
