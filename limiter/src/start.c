/* All that happens at a program's start; most programs never use CUDA and go on without another instruction of ours. */
#include "charge.h"

__attribute__((constructor)) static void start(void) { charge_clear_former_image(); }
